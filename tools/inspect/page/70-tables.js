// The chosen head as a table, ablation, and measures over training.

// The map as a real table; of a large one the three largest weights of each row.
function headTable() {
  const kMostCells = 4096;
  const holder = element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table of weights'});
  const details = element('details', {class: 'table', ontoggle: () => fill()}, element('summary', {text: 'The same as a table'}), holder);
  const fill = () => {
    if (!details.open) return;
    const head = currentHead(), {view} = head;
    const weight = (i, j) => weightAt(currentSnapshot(), head, i, j);
    const whole = view.cells.length <= kMostCells;
    const text = (x) => x === null ? 'masked' : Number.isNaN(x) ? 'no weight' : x.toFixed(4);
    const columns = whole ? view.columnTokens.map((_, j) => label(view.columnTokens, j)) : ['largest', 'second', 'third'];
    const rows = view.rowTokens.map((_, i) => {
      const keys = view.columnTokens.map((_, j) => j);
      const largest = () => keys.sort((a, b) => (weight(i, b) ?? -1) - (weight(i, a) ?? -1)).slice(0, 3)
                                .map((j) => `${label(view.columnTokens, j)} ${text(weight(i, j))}`);
      const cells = whole ? keys.map((j) => text(weight(i, j))) : largest();
      return element('tr', {}, element('th', {scope: 'row', text: label(view.rowTokens, i)}),
                     ...cells.map((c) => element('td', {class: c === 'masked' ? 'masked' : 'number', text: c})));
    });
    holder.replaceChildren(element('table', {}, element('caption', {
      text: `${head.fullName} at step ${grouped(currentSnapshot().step)}: weights, rows are queries`
    }), element('thead', {}, element('tr', {}, element('th', {scope: 'col', text: 'query'}),
                                    ...columns.map((c) => element('th', {scope: 'col', text: c})))),
                                   element('tbody', {}, ...rows)));
  };
  follow((changed) => (changed.has('snapshot') || changed.has('head')) && fill(), details);
  return details;
}

function ablationSection() {
  const has = (detail) => detail.heads[0]?.zeroed;
  if (!report.details.some(has)) return null;
  const body = element('tbody'), stale = element('p', {class: 'stale'}), base = element('p');
  const table = element('table', {class: 'ablation'}, element('caption', {text: 'What changes when one head is taken away'}),
                        element('thead', {}, element('tr', {}, ...['head', 'exact match without it', 'change', 'loss', 'exact match with its mean', 'loss', 'importance']
                                                                   .map((text) => element('th', {scope: 'col', text})))), body);
  const cell = (text, extra) => element('td', {class: 'number'}, extra, text);
  const rows = (detail) => report.heads.map((head, h) => {
    const result = detail.heads[h];
    const [exact, loss] = result.zeroed, [meanExact, meanLoss] = result.averaged;
    const bar = element('meter', {min: 0, max: 1, value: exact ?? 0, 'aria-hidden': 'true'});
    const choose = element('button', {type: 'button', class: 'link', text: head.fullName, onclick: () => go({head: h})});
    return element('tr', {class: h === state.head ? 'chosen' : ''}, element('th', {scope: 'row'}, choose), cell(percent(exact), bar),
                   cell(signed(100 * (exact - detail.base[0]), 1)), cell(signed(loss - detail.base[1])), cell(percent(meanExact)),
                   cell(signed(meanLoss - detail.base[1])), cell(digits(result.importance)));
  });
  follow((changed) => {
    if (!changed.has('snapshot') && !changed.has('head')) return;
    const detail = nearestDetail(currentSnapshot(), has), step = grouped(report.snapshots[detail.snapshot].step);
    const here = currentSnapshot().detail === detail;
    table.classList.toggle('old', !here);
    stale.textContent = here ? '' : staleAt(detail);
    base.textContent = `With every head: exact match ${percent(detail.base[0])}, loss ${digits(detail.base[1])}, on ` +
        `${grouped(report.about.ablationSequences)} unseen sequences at step ${step}.`;
    body.replaceChildren(...rows(detail));
  }, body);
  return section('Without it', 'A head set to zero, or to its mean output at each position. Points of exact match, and nats ' +
                 'of loss, against the whole model. Importance: E |z · dL/dz|.', base, stale,
                 element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Ablation'}, table), caution());
}

// --- measures

const kMeasures = {
  pattern_match: ['Pattern match', 'weight on the key that the rule names, mean over the rows that count'],
  sharpness: ['Sharpness', '1 − entropy / ln(visible keys), mean over rows: 0 uniform, 1 one key'],
  confidence: ['Confidence', "a row's largest weight, mean over rows"],
  distance: ['Distance', 'how many tokens back a row looks on average'],
  previous: ['Previous token', 'weight on the token before'],
  duplicate: ['Duplicate token', 'weight on earlier copies of the same token, in rows that have one'],
  induction: ['Induction', 'weight on the token after an earlier copy, in rows that have one']
};

function measuresSection() {
  const names = report.measureNames.filter((name) => report.heads.some((head) => !Number.isNaN(measureAt(currentSnapshot(), head, name))));
  const figures = names.map((name) => {
    const [title, meaning] = kMeasures[name], given = report.labels.names[name], {threshold} = report.labels;
    const chart = new Chart(`${title} over training`, (v) => v.toFixed(1), goToStep);
    whenLonger(() => {
      const lines = report.heads.map((head) => ({
        points: report.snapshots.map((snapshot) => [snapshot.step, measureAt(snapshot, head, name)]),
        class: 'other'
      }));
      const all = lines.flatMap((line) => line.points.map((p) => p[1])).filter((x) => !Number.isNaN(x));
      chart.draw(name === 'distance' ? Math.min(0, ...all) : 0, name === 'distance' ? Math.max(1, ...all) : 1, lines,
                 given && {level: threshold, name: 'label'});
    });
    const value = element('span', {class: 'number'});
    const node = figure('', chart);
    follow((changed) => {
      if (!changed.has('snapshot') && !changed.has('head')) return;
      chart.moveTo(currentSnapshot().step, state.head);
      if (changed.has('head')) for (const [h, path] of chart.paths.entries()) path.classList.toggle('chosen', h === state.head);
      value.textContent = `${currentHead().fullName}: ${digits(measureAt(currentSnapshot(), currentHead(), name), 3)}`;
    }, node);
    node.firstChild.append(element('strong', {text: title}), ' ', value, element('br'), meaning,
                           given ? `. From ${threshold} on a head is labelled “${given}”` : '');
    return node;
  });
  return section('Measures over training', 'Every head is a line; the chosen one is strong.', element('div', {class: 'curves small'}, ...figures), caution());
}
