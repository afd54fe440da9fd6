// The ledger: how one row of the chosen head comes about, number by number, from the learned q, k and v. It is worked
// out here in float32, as the engine does it; temperature and mask can be changed.

const f32 = Math.fround;

// Every column of the ledger for one query; null where masked.
function workOut(head, detail, query, temperature, causal) {
  const {view} = head, {D, Dv, q, k, v} = detail;
  const T = view.rows, S = view.columns;
  const steps = [];
  let largest = -Infinity;
  for (let j = 0; j < S; ++j) {
    let dot = 0;
    for (let i = 0; i < D; ++i) dot = f32(dot + f32(q[query * D + i] * k[j * D + i]));
    const trained = view.slot[query * S + j] >= 0;
    const visible = causal === null ? trained : causal ? j <= query + S - T : true;
    const score = f32(f32(dot * f32(detail.scale)) / f32(temperature));
    if (visible) largest = Math.max(largest, score);
    steps.push({dot, score, visible});
  }
  let sum = 0;
  for (const step of steps) {
    if (!step.visible) continue;
    step.shifted = f32(step.score - largest);
    step.exp = f32(Math.exp(step.shifted));
    sum = f32(sum + step.exp);
  }
  const output = new Float32Array(Dv);
  for (const [j, step] of steps.entries()) {
    step.weight = step.visible ? f32(step.exp / sum) : 0;
    step.mixed = new Float32Array(Dv);
    for (let i = 0; i < Dv; ++i) {
      step.mixed[i] = step.weight * v[j * Dv + i];
      output[i] += step.mixed[i];
    }
  }
  return {steps, largest, sum, output};
}

const lengthOf = (vector) => Math.hypot(...vector);

// A vector as a strip of colours, for the eye alone; nothing when all of it is next to nothing.
function drawStrip(canvas, vector, most) {
  canvas.hidden = !vector.some((x) => Math.abs(x) > 0.01 * most);
  if (canvas.hidden) return;
  if (canvas.width !== vector.length) canvas.width = vector.length;
  const image = new ImageData(vector.length, 1), pixels = new Uint32Array(image.data.buffer);
  for (const [i, x] of vector.entries()) pixels[i] = signedScale[Math.round(127.5 * (1 + clamp(x / most, -1, 1)))];
  canvas.getContext('2d').putImageData(image, 0, 0);
}

// A row of the ledger: made once, then filled with the numbers of each step.
class LedgerRow {
  constructor() {
    const cell = () => element('td', {class: 'number'});
    this.key = element('th', {scope: 'row'});
    [this.dot, this.score, this.shifted, this.exp, this.length] = Array.from({length: 5}, cell);
    this.mask = element('td', {class: 'number', text: 'visible'});
    this.meter = element('meter', {min: 0, max: 1, 'aria-hidden': 'true'});
    this.weight = document.createTextNode('');
    this.weightCell = element('td', {class: 'number'}, this.meter, this.weight);
    this.masked = element('td', {class: 'masked', colspan: 4, text: 'masked'});
    this.strip = element('canvas', {class: 'vector', width: 1, height: 1, 'aria-hidden': 'true'});
    this.node = element('tr', {}, this.key, this.dot, this.score, this.masked, this.length, element('td', {}, this.strip));
    this.visible = false;
  }

  fill(name, step, chosen, most) {
    this.node.classList.toggle('chosen', chosen);
    if (this.key.textContent !== name) this.key.textContent = name;
    this.dot.textContent = digits(step.dot);
    this.score.textContent = digits(step.score);
    if (step.visible !== this.visible) {
      const whole = [this.mask, this.shifted, this.exp, this.weightCell];
      if (step.visible) this.masked.replaceWith(...whole);
      else {
        this.mask.before(this.masked);
        for (const part of whole) part.remove();
      }
      this.visible = step.visible;
    }
    if (step.visible) {
      this.shifted.textContent = digits(step.shifted);
      this.exp.textContent = digits(step.exp);
      this.meter.value = step.weight;
      this.weight.data = digits(step.weight);
    }
    this.length.textContent = digits(lengthOf(step.mixed));
    drawStrip(this.strip, step.mixed, most);
  }
}

function ledgerSection() {
  if (report.details.length === 0) return null;
  const kMostRows = 200;
  const body = element('tbody'), foot = element('tfoot');
  const caption = element('caption');
  const output = element('p', {class: 'numbers', id: 'ledger-output'});
  const stale = element('p', {class: 'stale'});
  const query = element('select', {id: 'ledger-query', onchange: () => go({query: Number(query.value)})});
  const temperature = element('input', {
    type: 'range',
    id: 'temperature',
    min: -1,
    max: 1,
    step: 0.05,
    oninput: () => go({temperature: Number((10 ** Number(temperature.value)).toPrecision(3))})
  });
  const temperatureText = element('output', {for: 'temperature'});
  const causal = element('input', {type: 'checkbox', id: 'causal', onchange: () => go({causal: causal.checked})});
  const reset = element('button', {type: 'button', text: 'As trained', onclick: () => go({temperature: 1, causal: null})});
  const rows = [], total = element('canvas', {class: 'vector', width: 1, height: 1, 'aria-hidden': 'true'});
  let queryTokens = null;
  const headings = ['key', 'q · k', '÷ √d', 'mask', '− largest', 'exp', 'weight', '|weight × v|', 'weight × v'];
  follow(() => {
    const head = currentHead(), detail = nearestDetail(currentSnapshot());
    const isHere = currentSnapshot().detail === detail, step = report.snapshots[detail.snapshot].step;
    stale.textContent = isHere ? '' : staleAt(detail);
    body.parentElement.classList.toggle('old', !isHere);
    if (queryTokens !== head.view.rowTokens) {
      queryTokens = head.view.rowTokens;
      query.replaceChildren(...queryTokens.map((_, i) => element('option', {value: i, text: label(queryTokens, i)})));
    }
    query.value = state.query;
    temperature.value = Math.log10(state.temperature);
    temperatureText.textContent = state.temperature.toFixed(2);
    temperature.setAttribute('aria-valuetext', state.temperature.toFixed(2));
    const isCausal = head.kind === 'decoder';
    causal.checked = state.causal ?? isCausal;
    causal.disabled = head.view.rows > head.view.columns;
    if (!detail.heads[head.index].dot) {
      body.replaceChildren();
      foot.replaceChildren();
      caption.textContent = head.fullName;
      output.textContent = 'This head does more than compare by dot product (additive, capped or lowered by distance): ' +
          'the ledger does not work that out.';
      return;
    }
    const row = workOut(head, detail.heads[head.index], state.query, state.temperature, state.causal);
    const most = row.steps.reduce((top, s) => s.mixed.reduce((m, x) => Math.max(m, Math.abs(x)), top), 1e-12);
    const first = clamp(state.key - kMostRows / 2, 0, Math.max(row.steps.length - kMostRows, 0));
    const shownSteps = row.steps.slice(first, first + kMostRows);
    while (rows.length < shownSteps.length) rows.push(new LedgerRow());
    for (const [i, s] of shownSteps.entries())
      rows[i].fill(label(head.view.columnTokens, first + i), s, first + i === state.key, most);
    if (body.childElementCount !== shownSteps.length) body.replaceChildren(...rows.slice(0, shownSteps.length).map((r) => r.node));
    drawStrip(total, row.output, Math.max(...row.output.map(Math.abs), 1e-12));
    caption.textContent = `${head.fullName}, query ${label(head.view.rowTokens, state.query)}, step ${grouped(step)}` +
        (row.steps.length > kMostRows ? `; ${kMostRows} of ${row.steps.length} keys, around the chosen one` : '');
    const sum = row.steps.reduce((total, s) => f32(total + s.weight), 0);
    foot.replaceChildren(element('tr', {}, element('th', {scope: 'row', text: 'sum'}),
                                 element('td', {colspan: 4, text: `largest ${digits(row.largest)}`}),
                                 element('td', {class: 'number', text: digits(row.sum)}),
                                 element('td', {class: 'number', text: digits(sum)}),
                                 element('td', {class: 'number', text: digits(lengthOf(row.output))}),
                                 element('td', {}, total)));
    output.textContent = `The head's output for this query: [${[...row.output].map((x) => digits(x)).join(', ')}]`;
  }, body);
  const table = element('table', {class: 'ledger', id: 'ledger'}, caption,
                        element('thead', {}, element('tr', {}, ...headings.map((text) => element('th', {scope: 'col', text})))),
                        body, foot);
  return section('The ledger', 'How one row comes about, from the q, k and v that the model learned. A lower temperature ' +
                 'sharpens a row, a higher one flattens it; what the mask hides keeps weight 0 at any temperature. √d ' +
                 "includes the model's own temperature.",
                 element('div', {class: 'controls'}, element('label', {for: 'ledger-query'}, 'Query ', query),
                         element('label', {for: 'temperature'}, 'Temperature ', temperature, temperatureText),
                         element('label', {for: 'causal'}, causal, 'Causal mask'), reset),
                 stale, element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Ledger'}, table),
                 element('details', {}, element('summary', {text: 'The output vector'}), output), caution());
}
