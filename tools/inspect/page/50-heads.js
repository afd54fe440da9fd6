// Every head at once, a row a layer, and the one that was chosen, large.

// A small map has room for so many pixels: of more cells each pixel shows the largest weight of a few.
const kSmallMap = 256;

// Of each visible cell its pixel, and each pixel once; heads share it as they share their view.
function pixelsOfCells(view) {
  if (view.small) return view.small;
  const side = Math.ceil(Math.max(view.rows, view.columns) / kSmallMap);
  const width = Math.ceil(view.columns / side), height = Math.ceil(view.rows / side);
  const at = side === 1 ? view.cells : view.cells.map((cell) =>
      Math.floor(Math.floor(cell / view.columns) / side) * width + Math.floor(cell % view.columns / side));
  return view.small = {width, height, side, at, all: side === 1 ? at : Int32Array.from(new Set(at))};
}

function headButton(head) {
  const {width, height, at, all} = pixelsOfCells(head.view);
  const canvas = element('canvas', {class: 'small-map', width, height, 'aria-hidden': 'true'});
  const context = canvas.getContext('2d');
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer), largest = new Uint16Array(width * height);
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
    largest.fill(0);
    for (let i = 0; i < at.length; ++i) {
      const pixel = at[i], weight = weights[i];
      if (weight > largest[pixel]) largest[pixel] = weight;  // what is no weight is greater than any
    }
    for (let i = 0; i < all.length; ++i) pixels[all[i]] = weightPixels[largest[all[i]]];
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
    const group = element('div', {class: 'group'}, element('h3', {text: `${title}, with its ${what}`}),
                          ...layers.map((layer) => layerRow(layer, heads.filter((head) => head.layer === layer))));
    group.style.setProperty('--heads', Math.max(...layers.map((layer) => heads.filter((head) => head.layer === layer).length)));
    return group;
  });
  const side = Math.max(...report.heads.map((head) => pixelsOfCells(head.view).side));
  return section('Every head', 'A row a layer. Rows of a map are queries, columns are keys, the first token is top left. ' +
                 'All maps share one fixed scale, so their colours compare over heads and over time.' +
                 (side > 1 ? ` Here each pixel shows the largest weight of ${side} × ${side} cells.` : ''), element('div', {class: 'groups'}, ...parts),
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
  if (map === 'weights') return state.ownScale ? unsigned(weight, largestOf(weight, view)) : {...unsigned(weight, 1), packed: weights};
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

const cellName = (view, query, key) =>
    `query ${query} '${shown(view.rowTokens[query])}', key ${key} '${shown(view.columnTokens[key])}'`;

function describeCell(query, key) {
  const head = currentHead(), {view} = head;
  const where = cellName(view, query, key);
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
  const holder = element('div', {class: 'large'}, large.readout, large.node, legends);
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
  const ideal = idealFigure();  // drawn first: the large map takes the width that it leaves
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
    holder.style.maxWidth = `max(34rem, ${44 * (state.transpose ? head.view.rows : head.view.columns) + 130}px)`;
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
                 element('div', {class: 'maps'}, holder, ideal),
                 warning, headTable(), caution());
}

// The rule's pattern beside it, in the same colours and with the same cursor.
function idealFigure() {
  const one = (view) => (slot) => view.ideal[Math.floor(view.cells[slot] / view.columns)] === view.cells[slot] % view.columns ? 1 : 0;
  const describe = (query, key) => {
    const {view} = currentHead(), where = cellName(view, query, key);
    return view.slot[query * view.columns + key] < 0 ? `${where}: masked` : `${where}: the rule ${view.ideal[query] < 0 ? 'does not ask for this row' :
        view.ideal[query] === key ? 'looks here' : 'does not look here'}`;
  };
  const map = new Heatmap('ideal', describe, (query, key) => go({query, key}), 'What the rule looks at');
  const node = element('figure', {class: 'ideal'}, element('figcaption', {text: 'What the rule looks at'}), map.node,
                       element('p', {class: 'note', text: 'Bright: the key that holds the answer, in the rows that count.'}));
  follow((changed) => {
    const {view, hasRule} = currentHead(), {query, key, transpose} = state;
    node.hidden = !hasRule;
    if (hasRule && ['head', 'query', 'key', 'transpose'].some((name) => changed.has(name)))
      map.draw({view, value: one(view), least: 0, most: 1, colours: viridis, scale: weightScale, text: () => '', query, key, transpose, wanted: 20, ideal: null});
  }, node);
  return node;
}
