// Circuits: what the chosen head's matrices do to tokens, over the whole vocabulary, whatever stands in between.

function circuitsSection() {
  const {vocabulary} = report, V = vocabulary.length, has = (detail) => detail.heads[0]?.qk;
  if (!report.details.some(has)) return null;
  const cells = Int32Array.from({length: V * V}, (_, i) => i);
  const view = {rows: V, columns: V, rowTokens: vocabulary, columnTokens: vocabulary, cells, slot: cells};
  const kinds = {
    qk: ['QK: which key a query wants', 'query', 'key'],
    ov: ['OV: what a key makes likely', 'key', 'token']
  };
  const detail = () => nearestDetail(currentSnapshot(), has), matrix = () => detail().heads[state.head][state.circuit];
  const value = (cell) => matrix().values[cell] / 32767 * matrix().largest;
  const describe = (row, column) => {
    const [, from, to] = kinds[state.circuit];
    return `${from} '${shown(vocabulary[row])}', ${to} '${shown(vocabulary[column])}': ${value(row * V + column).toPrecision(4)}`;
  };
  const map = new Heatmap('circuit', describe, (from, to) => go({from, to}), 'Circuit of one head');
  const legends = element('div', {class: 'legends'}), stale = element('p', {class: 'stale'});
  const title = element('p', {class: 'finding'});
  const choice = element('select', {id: 'circuit', onchange: () => go({circuit: choice.value})},
                         ...Object.entries(kinds).map(([name, [text]]) => element('option', {value: name, text})));
  const show = () => {
    choice.value = state.circuit;
    const {largest, values} = matrix(), {copying} = detail().heads[state.head], old = currentSnapshot().detail !== detail();
    stale.textContent = old ? staleAt(detail()) : '';
    map.canvas.classList.toggle('old', old);
    title.textContent = `${currentHead().fullName}: copying score ${digits(copying, 2)} (1: a key makes itself likely).`;
    map.draw({...signedSpec((cell) => values[cell] / 32767 * largest, largest || 1), view, query: state.from, key: state.to, transpose: false, wanted: 34, ideal: null});
    const format = (x) => Number(x.toPrecision(3)).toString().replace('-', '−');
    legends.replaceChildren(legend((x) => diverging(2 * x - 1), format(-largest), format(largest), kinds[state.circuit][0], []));
  };
  const reads = compositionTable();
  follow((changed) => ['head', 'snapshot', 'circuit', 'from', 'to'].some((name) => changed.has(name)) && show(), map.node);
  return section('Circuits', 'W_E W_QK W_Eᵀ and W_E W_OV W_U of the model, without norms, positions and biases ' +
                 '(Elhage et al. 2021). This picture has a scale of its own.', title, stale,
                 element('div', {class: 'controls'}, element('label', {for: 'circuit'}, 'Show ', choice)),
                 element('div', {class: 'large circuit'}, map.readout, map.node), legends, reads, caution());
}

// What the chosen head reads of what heads below it write.
function compositionTable() {
  const has = (detail) => detail.compositions;
  if (!report.details.some(has)) return null;
  const body = element('tbody'), caption = element('caption');
  const node = element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Composition'}, element('table', {}, caption,
      element('thead', {}, element('tr', {}, ...['written by', 'by its queries', 'by its keys', 'by its values'].map((text) => element('th', {scope: 'col', text})))), body));
  follow((changed) => {
    if (!changed.has('head') && !changed.has('snapshot')) return;
    const detail = nearestDetail(currentSnapshot(), has);
    node.classList.toggle('old', currentSnapshot().detail !== detail);
    const pairs = detail.compositions.filter(([, to]) => to === state.head);
    node.hidden = pairs.length === 0;
    caption.textContent = `How much ${currentHead().fullName} reads of earlier heads: |W_to W_from| / (|W_to| |W_from|)`;
    body.replaceChildren(...pairs.map(([from, , ...scores]) => element('tr', {}, element('th', {scope: 'row', text: report.heads[from].fullName}),
        ...scores.map((x) => element('td', {class: 'number', text: digits(x, 3)})))));
  }, node);
  return node;
}
