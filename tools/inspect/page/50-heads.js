// Every head at once, a row a layer, and the one that was chosen, large.

function headButton(head) {
  const {view} = head;
  const canvas = element('canvas', {class: 'small-map', width: view.columns, height: view.rows, 'aria-hidden': 'true'});
  const context = canvas.getContext('2d');
  const image = new ImageData(view.columns, view.rows);
  const pixels = new Uint32Array(image.data.buffer);
  const value = element('span', {class: 'number'});
  const button = element('button', {
    type: 'button',
    class: 'head',
    'aria-pressed': 'false',
    onclick: () => go({head: head.index})
  }, canvas, element('span', {class: 'head-name', text: head.name}), value);
  follow((changed) => {
    if (changed.has('head')) button.setAttribute('aria-pressed', String(head.index === state.head));
    if (!changed.has('snapshot')) return;
    const weights = weightsOf(currentSnapshot(), head);
    const {cells} = view;
    for (let i = 0; i < cells.length; ++i) pixels[cells[i]] = weightPixels[weights[i]];
    context.putImageData(image, 0, 0);
    const match = measureAt(currentSnapshot(), head, head.hasRule ? 'pattern_match' : 'sharpness');
    value.textContent = Number.isNaN(match) ? '' : (Math.floor(match * 100 + 1e-6) / 100).toFixed(2);
  }, button);
  return button;
}

function layerRow(layer, heads) {
  const row = element('div', {class: 'layer', role: 'group', 'aria-label': `Layer ${layer}`}, ...heads.map(headButton));
  row.style.setProperty('--heads', heads.length);
  return row;
}

function headsSection() {
  const groups = Object.entries(kKinds).filter(([kind]) => report.heads.some((head) => head.kind === kind));
  const parts = groups.map(([kind, title]) => {
    const heads = report.heads.filter((head) => head.kind === kind);
    const layers = [...new Set(heads.map((head) => head.layer))];
    const what = heads.some((head) => head.hasRule) ? 'pattern match' : 'sharpness';
    return element('div', {class: 'group'}, element('h3', {text: `${title}, with its ${what}`}),
                   ...layers.map((layer) => layerRow(layer, heads.filter((head) => head.layer === layer))));
  });
  return section('Every head', 'A row a layer. Rows of a map are queries, columns are keys, the first token is top left. ' +
                 'All maps share one fixed scale, so their colours compare over heads and over time.', ...parts,
                 legend(viridis, '0', '1', 'Weights', [['masked-mark', 'masked']]), caution());
}

// --- the chosen head

// What the map that is shown holds: a value for each visible cell by its slot, its colours and their ends; `detail` when
// it is that of another step. Null when it was never computed.
function mapSpec(map) {
  const head = currentHead(), snapshot = currentSnapshot(), {view} = head;
  const weights = weightsOf(snapshot, head);
  const weight = (slot) => weights[slot] === kNoWeight ? NaN : weights[slot] / kOne;
  const two = (x) => x < 0.005 ? '' : x > 0.995 ? '1' : x.toFixed(2).slice(1);
  const unsigned = (value, most) => ({value, least: 0, most: most || 1, colours: viridis, scale: weightScale, text: two});
  if (map === 'weights') return unsigned(weight, state.ownScale ? largestOf(weight, view) : 1);
  if (map === 'change') {
    const first = weightsOf(report.snapshots[0], head);
    return signedSpec((slot) => weight(slot) - first[slot] / kOne, 1);
  }
  if (map === 'rollout') return view.rows === view.columns && head.kind !== 'cross' ? {...unsigned(...rollout(snapshot, head)), view: rolled.view} : null;
  const name = map === 'effect' ? 'gradient' : map;
  const detail = nearestDetail(snapshot, (d) => d.heads[head.index][name]);
  if (!detail) return null;
  const source = detail.heads[head.index][name], then = weightsOf(report.snapshots[detail.snapshot], head);
  const from = {own: true, detail: snapshot.detail === detail ? null : detail};
  const read = (slot) => {
    const packed = source.values[view.cells[slot]];
    return packed === kNoNumber ? NaN : packed / 32767 * source.largest;
  };
  if (map === 'norm') return {...unsigned(read, source.largest), text: (x) => x < 0.005 ? '' : x.toFixed(2), ...from};
  const value = map === 'effect' ? (slot) => read(slot) * (then[slot] === kNoWeight ? NaN : then[slot] / kOne) : read;
  return {...signedSpec(value, largestOf(value, view) || 1), ...from};
}

// Attention rollout (Abnar and Zuidema 2020): through each layer half of the mean over its heads, half the residual path.
// A cell that no path reaches is masked. Kept for the last moment and layer asked for.
const rolled = {};
function rollout(snapshot, head) {
  if (rolled.snapshot !== snapshot || rolled.kind !== head.kind || rolled.layer !== head.layer) {
    const {rows: T, rowTokens, columnTokens} = head.view;
    let total = null;
    for (let layer = 0; layer <= head.layer; ++layer) {
      const heads = report.heads.filter((h) => h.kind === head.kind && h.layer === layer);
      const mixed = new Float64Array(T * T);
      for (let i = 0; i < T; ++i) mixed[i * T + i] = 0.5;
      for (const h of heads) {
        const weights = weightsOf(snapshot, h);
        for (const [slot, cell] of h.view.cells.entries())
          mixed[cell] += (weights[slot] === kNoWeight ? NaN : weights[slot] / kOne) / heads.length / 2;
      }
      total = total ? product(mixed, total, T) : mixed;
    }
    const reached = Int32Array.from(total.keys()).filter((cell) => total[cell] !== 0), slot = new Int32Array(T * T).fill(-1);
    for (const [i, cell] of reached.entries()) slot[cell] = i;
    Object.assign(rolled, {snapshot, kind: head.kind, layer: head.layer, total,
                           view: {rows: T, columns: T, rowTokens, columnTokens, cells: reached, slot}});
  }
  return [(slot) => rolled.total[rolled.view.cells[slot]], 1];
}

function product(a, b, T) {
  const out = new Float64Array(T * T);
  for (let i = 0; i < T; ++i)
    for (let k = 0; k < T; ++k) {
      const x = a[i * T + k];
      if (x === 0) continue;
      for (let j = 0; j < T; ++j) out[i * T + j] += x * b[k * T + j];
    }
  return out;
}

function largestOf(value, view) {
  let most = 0;
  for (let slot = 0; slot < view.cells.length; ++slot) {
    const x = Math.abs(value(slot));
    if (x > most) most = x;  // never when it is not a number
  }
  return most;
}

function signedSpec(value, most) {
  const text = (x) => Math.abs(x) < 0.05 * most ? '' : x.toFixed(most < 0.1 ? 3 : 2).replace('-0', '−').replace(/^0/, '');
  return {value, least: -most, most, colours: (x) => diverging(2 * x - 1), scale: signedScale, text};
}

function describeCell(query, key) {
  const head = currentHead(), {view} = head;
  const where = `query ${query} '${shown(view.rowTokens[query])}', key ${key} '${shown(view.columnTokens[key])}'`;
  const weight = weightAt(currentSnapshot(), head, query, key);
  if (weight === null) return `${where}: masked`;
  const broken = Number.isNaN(weight);
  let words = `${where}, weight ${broken ? 'is not a number between 0 and 1' : weight.toFixed(4)}`;
  if (state.map !== 'weights') {
    const spec = mapSpec(state.map);
    const slot = (spec?.view ?? view).slot[query * view.columns + key];
    if (spec && slot >= 0) words += `, ${kMaps[state.map]} ${spec.value(slot).toPrecision(4)}`;
    if (spec?.detail) words += ` (at step ${grouped(report.snapshots[spec.detail.snapshot].step)})`;
  }
  return head.view.ideal[query] === key ? `${words} (the rule looks here)` : words;
}

// Rows whose weights do not sum to 1, as words; sums are never mended.
function badRows() {
  const head = currentHead(), {view} = head, weights = weightsOf(currentSnapshot(), head);
  const sums = new Float64Array(view.rows);
  for (let slot = 0; slot < weights.length; ++slot)
    sums[Math.floor(view.cells[slot] / view.columns)] += weights[slot] === kNoWeight ? NaN : weights[slot] / kOne;
  const bad = [];
  for (const [i, sum] of sums.entries())
    if (!(Math.abs(sum - 1) <= view.columns * 1e-5)) bad.push(`${i}: ${Number.isNaN(sum) ? 'holds what is no weight' : sum.toFixed(5)}`);
  return bad.length ? `Rows that do not sum to 1: ${bad.slice(0, 6).join('; ')}${bad.length > 6 ? ' and more' : ''}.` : '';
}

// Why a map cannot be shown here.
function missing(map) {
  if (map === 'rollout') return 'Rollout follows self-attention through its layers; this is cross-attention.';
  if (map === 'knockOut') return 'Cells are knocked out of models small enough: not computed.';
  return `${kMaps[map]} needs the model's parameters, which were not kept.`;
}

function headSection() {
  const title = element('h2', {id: 'the-head'});
  const large = new Heatmap('large', describeCell, (query, key) => go({query, key}));
  const finding = element('p', {class: 'finding'});
  const without = element('p', {class: 'finding'});
  const warning = element('p', {class: 'warning', role: 'status'});
  const legends = element('div', {class: 'legends'});
  const stale = element('p', {class: 'stale'});
  const ideal = element('canvas', {class: 'ideal-map', role: 'img'});
  const idealBox = element('figure', {class: 'ideal'}, element('figcaption', {text: 'What the rule looks at'}), ideal,
                           element('p', {class: 'note', text: 'Bright: the key that holds the answer, in the rows that count.'}));
  const choice = element('select', {id: 'map', onchange: () => go({map: choice.value})},
                         ...Object.entries(kMaps).map(([value, text]) => element('option', {value, text})));
  const check = (id, text, name) => {
    const box = element('input', {type: 'checkbox', id, onchange: () => go({[name]: box.checked})});
    follow((changed) => changed.has(name) && (box.checked = state[name]));
    return element('label', {for: id}, box, text);
  };
  const controls = element('div', {class: 'controls'}, element('label', {for: 'map'}, 'Show ', choice),
                           check('transpose', 'Transpose', 'transpose'),
                           check('own-scale', 'Scale of its own (colours no longer compare)', 'ownScale'));
  let drawnIdeal = '';
  follow(() => {
    const head = currentHead(), snapshot = currentSnapshot();
    title.textContent = `${head.fullName}: ${kKinds[head.kind].toLowerCase()}, layer ${head.layer}, head ${head.head}`;
    finding.textContent = whole(snapshot.findings[head.index]);
    const detail = nearestDetail(snapshot);
    const words = detail?.heads[head.index].without ?? '';
    const agreement = detail?.heads[head.index].agreement;
    without.textContent = whole(words) + (agreement !== undefined && agreement !== null ?
        ` Weights and |A · dL/dA| agree with Kendall's tau ${agreement.toFixed(2)}.` : '');
    without.classList.toggle('old', Boolean(detail && snapshot.detail !== detail));
    if (without.classList.contains('old') && without.textContent)
      without.textContent += ` (At step ${grouped(report.snapshots[detail.snapshot].step)}: parameters were not kept here.)`;
    choice.value = state.map;
    const wanted = mapSpec(state.map), spec = wanted ?? mapSpec('weights');
    stale.textContent = !wanted ? `${missing(state.map)} Shown are the weights.` : wanted.detail ? staleAt(wanted.detail) : '';
    large.canvas.classList.toggle('old', Boolean(wanted?.detail));
    const idealKey = `${head.index} ${state.transpose} ${matchMedia('(prefers-color-scheme: dark)').matches}`;
    if (idealKey !== drawnIdeal) drawIdeal(ideal, head);
    drawnIdeal = idealKey;
    idealBox.hidden = !head.hasRule;  // before the large map, which takes the width that this leaves
    large.draw({view: head.view, ...spec, query: state.query, key: state.key, transpose: state.transpose, wanted: 44,
                ideal: head.hasRule ? head.view.ideal : null});
    warning.textContent = badRows();
    const format = (x) => Number(x.toPrecision(3)).toString().replace('-', '−');
    const marks = [['masked-mark', 'masked']];
    if (head.hasRule) marks.push(['rule-mark', 'the rule looks here']);
    const own = spec.own || state.ownScale && !wanted?.own && spec.most !== 1 ? ', a scale of its own' : '';
    legends.replaceChildren(legend(spec.colours, format(spec.least), format(spec.most), kMaps[wanted ? state.map : 'weights'] + own, marks));
  }, large.node);
  return element('section', {'aria-labelledby': 'the-head', id: 'learned-by-heart'}, title, finding, without, controls,
                 element('p', {class: 'note', text: 'Read along a row: its weights say how that query mixes the values, and sum to 1. ' +
                     'Rows are queries, columns are keys. Arrow keys move the cell.'}),
                 stale,
                 element('div', {class: 'maps'}, element('div', {class: 'large'}, large.readout, large.node, legends), idealBox),
                 warning, headTable(), caution());
}

// The rule's pattern, in the same colours.
function drawIdeal(canvas, head) {
  if (!head.hasRule) return;
  const {view} = head;
  const cell = clamp(Math.floor(260 / Math.max(view.rows, view.columns)), 1, 14);
  const across = state.transpose ? view.rows : view.columns, down = state.transpose ? view.columns : view.rows;
  canvas.width = across * cell;
  canvas.height = down * cell;
  const context = canvas.getContext('2d');
  context.fillStyle = hatch(context);
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const position of view.cells) {
    const query = Math.floor(position / view.columns), key = position % view.columns;
    context.fillStyle = css(viridis(view.ideal[query] === key ? 1 : 0));
    const [x, y] = state.transpose ? [query, key] : [key, query];
    context.fillRect(x * cell, y * cell, cell, cell);
  }
  const pairs = view.ideal.flatMap((key, query) => key < 0 ? [] : [`${query} looks at ${key}`]);
  canvas.setAttribute('aria-label', `Ideal pattern: query ${pairs.slice(0, 12).join(', ')}${pairs.length > 12 ? ' and so on' : ''}`);
}
