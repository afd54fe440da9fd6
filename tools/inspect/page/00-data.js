// What the program put into the page, and how to read it. Everything shown comes from here; nothing is loaded.
'use strict';

const report = JSON.parse(document.getElementById('report').textContent);

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const raw = atob(base64);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) out[i] = raw.charCodeAt(i);
  return out;
}

const bytes = bytesOf(document.getElementById('bytes').textContent.trim());

// A piece of the packed numbers: [offset, count] as the program wrote it.
const packed = (type, [offset, count], from = bytes) => new type(from.buffer, from.byteOffset + offset, count);

// 16-bit weights: 65534 is 1; 65535 is no weight at all.
const kOne = 65534, kNoWeight = 65535;
// Of signed 16-bit numbers, the one that is none.
const kNoNumber = -32768;

const kSpelled = {' ': '␠', '\n': '⏎', '\t': '⇥'};

// A token as a person can see it. White space gets a sign, what reorders or hides text is spelled out.
function shown(token) {
  let text = '';
  for (const c of token) {
    const code = c.codePointAt(0);
    const hidden = code < 32 || (code >= 127 && code < 160) || code === 0xad || (code >= 0x200b && code <= 0x200f) ||
        (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code === 0xfeff ||
        (code >= 0xd800 && code <= 0xdfff);
    text += kSpelled[c] ?? (hidden ? `\\u{${code.toString(16)}}` : c);
  }
  return text;
}

const label = (tokens, i) => `${i}:${shown(tokens[i])}`;

// --- heads, with what they share

const kKinds = {
  decoder: 'Decoder self-attention',
  cross: 'Cross-attention',
  encoder: 'Encoder self-attention'
};

const views = new Map();

function viewOf(head) {
  const key = `${head.kind} ${head.layer} ${head.view.visible[0]}`;  // JSON repeats what heads share
  if (!views.has(key)) {
    const view = head.view;
    const visible = packed(Uint8Array, view.visible);
    view.slot = new Int32Array(visible.length).fill(-1);  // of each cell among the visible ones
    let count = 0;
    for (let i = 0; i < visible.length; ++i)
      if (visible[i]) view.slot[i] = count++;
    view.cells = new Int32Array(count);
    for (let i = 0; i < visible.length; ++i)
      if (visible[i]) view.cells[view.slot[i]] = i;
    views.set(key, view);
  }
  return views.get(key);
}

const severalKinds = new Set(report.heads.map((head) => head.kind)).size > 1;
let weightsBefore = 0;
for (const [index, head] of report.heads.entries()) {
  head.view = viewOf(head);
  head.index = index;
  head.first = weightsBefore;  // of its weights in every snapshot
  weightsBefore += head.view.cells.length;
  head.name = `L${head.layer}H${head.head}`;
  head.fullName = severalKinds ? `${head.kind} ${head.name}` : head.name;
  head.hasRule = head.view.ideal.some((column) => column >= 0);
}

function unpack(snapshot, from) {
  snapshot.weights = packed(Uint16Array, snapshot.weights, from);
  snapshot.measures = packed(Float32Array, snapshot.measures, from);
}
for (const snapshot of report.snapshots) unpack(snapshot);

const weightsOf = (snapshot, head) => snapshot.weights.subarray(head.first, head.first + head.view.cells.length);

// The weight of a cell: null when masked, NaN when it is no weight.
function weightAt(snapshot, head, query, key) {
  const slot = head.view.slot[query * head.view.columns + key];
  if (slot < 0) return null;
  const weight = snapshot.weights[head.first + slot];
  return weight === kNoWeight ? NaN : weight / kOne;
}

const measureAt = (snapshot, head, name) =>
    snapshot.measures[head.index * report.measureNames.length + report.measureNames.indexOf(name)];

// --- details: what was computed where parameters were kept

for (const detail of report.details) {
  report.snapshots[detail.snapshot].detail = detail;
  for (const head of detail.heads) {
    for (const name of ['q', 'k', 'v']) head[name] = packed(Float32Array, head[name]);
    for (const name of ['gradient', 'norm', 'knockOut', 'qk', 'ov']) {
      if (!head[name]) continue;
      const [offset, count, largest] = head[name];
      head[name] = {values: packed(Int16Array, [offset, count]), largest};
    }
  }
  for (const layer of detail.lens ?? []) {
    layer.likeliest = packed(Int32Array, layer.likeliest);
    layer.probability = packed(Float32Array, layer.probability);
  }
  for (const row of detail.attribution?.rows ?? [])
    for (const name of ['values', 'leads']) row[name] = packed(Float32Array, row[name]);
}

// The detail nearest to a snapshot (the earlier of two) of those that have something, or undefined.
function nearestDetail(snapshot, has = () => true) {
  let best;
  for (const detail of report.details) {
    if (!has(detail)) continue;
    const distance = (d) => Math.abs(report.snapshots[d.snapshot].step - snapshot.step);
    if (!best || distance(detail) < distance(best)) best = detail;
  }
  return best;
}

// --- numbers as text

const digits = (x, n = 4) => x === null || x === undefined || Number.isNaN(x) ? '–' : x.toFixed(n).replace('-', '−');
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
// A number and its % stay on one line.
const whole = (text) => text.replaceAll(' %', '\u00a0%');
// 0.9996 is not yet 100 %.
function percent(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return '–';
  return x >= 1 ? '100\u00a0%' : `${(Math.floor(x * 1000 + 1e-9) / 10).toFixed(1)}\u00a0%`;
}
function signed(x, n = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return '–';
  const text = Math.abs(x).toFixed(n);
  return Number(text) === 0 ? text : (x < 0 ? '−' : '+') + text;
}
