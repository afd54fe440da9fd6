// What the model would say if it ended after a layer, and which part says what: at the rows that the rule answers.

const partName = (name) => name.replace('embed', 'embedding').replace(/blocks\.(\d+)\.?/, 'layer $1 ').trim();

// The probability of the right token in every row that counts, after each part; all rows when none counts.
function lensRows(lens, row) {
  const kMostRows = 200;
  const all = [...lens[0].probability.keys()], counted = all.filter((t) => !Number.isNaN(lens[0].probability[t]));
  const rows = counted.length ? counted : all;
  const first = clamp(rows.findIndex((t) => t >= row) - kMostRows / 2, 0, Math.max(rows.length - kMostRows, 0));
  return rows.slice(first, first + kMostRows);
}

function lensTable(choose) {
  const head = element('tr'), body = element('tbody'), caption = element('caption');
  const table = element('table', {class: 'lens'}, caption, element('thead', {}, head), body);
  const said = (layer, t, expected) => {
    const token = report.vocabulary[layer.likeliest[t]], right = token === expected;
    const share = Number.isNaN(layer.probability[t]) ? '' : ` ${digits(layer.probability[t], 2)}`;
    return element('td', {class: right ? 'number right' : 'number', text: `${right ? '✓ ' : ''}${shown(token)}${share}`});
  };
  return {
    table,
    draw({lens}, row) {
      const {inputs, expected} = report.about.example;
      caption.textContent = 'Logit lens: the likeliest token and the probability of the right one; ✓ where it is the right one';
      head.replaceChildren(...['row', ...lens.map((layer) => `after ${partName(layer.name)}`), 'the rule']
                               .map((text) => element('th', {scope: 'col', text})));
      body.replaceChildren(...lensRows(lens, row).map((t) => element('tr', {class: t === row ? 'chosen' : ''},
          element('th', {scope: 'row'}, element('button', {type: 'button', class: 'link', text: label(inputs, t), onclick: () => choose(t)})),
          ...lens.map((layer) => said(layer, t, expected[t])), element('td', {class: 'number', text: shown(expected[t])}))));
    }
  };
}

// A number as a bar to the left or the right of the middle.
function signedBar(share) {
  const bar = element('i', {class: share < 0 ? 'below' : 'above'});
  bar.style.width = `${50 * Math.abs(share)}%`;
  bar.style.left = `${share < 0 ? 50 + 50 * share : 50}%`;
  return element('span', {class: 'bar', 'aria-hidden': 'true'}, bar);
}

function attributionTable() {
  const body = element('tbody'), foot = element('tfoot'), caption = element('caption');
  const table = element('table', {class: 'attribution'}, caption,
      element('thead', {}, element('tr', {}, ...['part', 'logit', 'lead', 'lead as a bar'].map((text) => element('th', {scope: 'col', text})))), body, foot);
  const row = (name, logit, lead, bar) => element('tr', {}, element('th', {scope: 'row', text: name}),
      element('td', {class: 'number', text: signed(logit, 3)}), element('td', {class: 'number', text: signed(lead, 3)}), element('td', {}, bar));
  const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
  return {
    table,
    draw({attribution: {parts, rows}}, t) {
      const {inputs, expected} = report.about.example;
      const {values, leads, other} = rows.find((r) => r.row === t) ?? rows[0];
      t = rows.find((r) => r.row === t) ? t : rows[0].row;
      const most = Math.max(...leads.map(Math.abs), 1e-12);
      caption.textContent = `Row ${label(inputs, t)}: the logit of '${shown(expected[t])}', and its lead over '${shown(report.vocabulary[other])}', the likeliest other`;
      body.replaceChildren(...parts.map((name, i) => row(partName(name), values[i], leads[i], signedBar(leads[i] / most))));
      foot.replaceChildren(row('sum', sum(values), sum(leads), null));
    }
  };
}

function lensSection() {
  const has = (detail) => detail.lens;
  if (!report.details.some(has)) return null;
  const answers = report.details.some((detail) => detail.attribution);
  let row = 0, drawn = '';
  // Rows of an encoder beside a decoder are those of the source: then the row stays.
  const isTarget = () => currentHead().view.rowTokens.length === report.about.example.inputs.length && !(severalKinds && currentHead().kind === 'encoder');
  const lens = lensTable((t) => isTarget() ? go({query: t}) : show(row = t)), attribution = attributionTable();
  const stale = element('p', {class: 'stale'});
  const show = () => {
    const detail = nearestDetail(currentSnapshot(), has), old = currentSnapshot().detail !== detail;
    stale.textContent = old ? staleAt(detail) : '';
    for (const {table} of [lens, attribution]) table.classList.toggle('old', old);
    if (drawn === (drawn = `${detail.snapshot} ${row}`)) return;
    lens.draw(detail, row);
    if (answers) attribution.draw(detail, row);
  };
  follow((changed) => {
    if (isTarget()) row = state.query;
    if (['snapshot', 'head', 'query'].some((name) => changed.has(name))) show();
  }, lens.table);
  const scroll = (name, table) => element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': name}, table);
  return section('What each layer would say', 'The last norm and the output head, applied after each layer (logit lens); and what ' +
                 'each part of the model adds to the logit of the right token, with the scale of the last norm held (direct logit ' +
                 'attribution). The parts sum to the logit.', stale,
                 element('div', {class: 'maps'}, scroll('Logit lens', lens.table), answers ? scroll('Direct logit attribution', attribution.table) :
                     element('p', {class: 'note', text: 'Attribution needs a last norm (model.norm_order = pre) and rows that the rule answers.'})), caution());
}
