// The one cursor that everything follows, and its trace in the address.

const kMaps = {
  weights: 'Weights',
  change: 'Change since the start',
  gradient: 'dL/dA',
  effect: 'A · dL/dA',
  norm: 'A · |v W_O|',
  knockOut: 'Loss when the cell is masked',
  rollout: 'Rollout up to this layer'
};

const state = {
  snapshot: Math.max(report.snapshots.length - 1, 0),
  head: 0,
  query: 0,
  key: 0,
  map: 'weights',
  transpose: false,
  ownScale: false,
  temperature: 1,
  causal: null,  // null: the mask that the model was trained with
  circuit: 'ov',
  from: 0,  // the circuit's cell: tokens by their number
  to: 0
};

// What follows the cursor. A section below or above the window is drawn right after the frame, so that moving the slider
// never waits for what nobody sees.
const listeners = [];
function follow(update, node) {
  listeners.push({update, node, missed: new Set()});
  if (node) watcher.observe(node);
}

// Which of them are near the window: told by the browser, since asking would lay out the page in the middle of a step.
const nearness = new Map();
const watcher = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries) nearness.set(target, isIntersecting);
}, {rootMargin: '100px 0px'});

// What shows all of the training at once, and is drawn anew when a live run has gone on.
const growing = [];
function whenLonger(redraw) {
  redraw();
  growing.push(redraw);
}

function isNear(node) {
  if (nearness.has(node)) return nearness.get(node);
  const {top, bottom} = node.getBoundingClientRect();  // before the browser has told
  return bottom >= -100 && top <= innerHeight + 100;
}

let later = 0;
function drawLater() {
  clearTimeout(later);
  later = setTimeout(() => {
    for (const listener of listeners) {
      if (listener.missed.size === 0) continue;
      const changed = listener.missed;
      listener.missed = new Set();
      listener.update(changed);
    }
    later = 0;
  }, 30);
}

const clamp = (x, least, most) => Math.min(Math.max(x, least), most);
const currentHead = () => report.heads[state.head];
const currentSnapshot = () => report.snapshots[state.snapshot];

let scheduled = false;
const changedSince = new Set();

// Changes the cursor; what follows it is drawn with the next frame.
function go(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (state[name] === value) continue;
    state[name] = value;
    changedSince.add(name);
  }
  state.snapshot = clamp(state.snapshot, 0, report.snapshots.length - 1);
  state.head = clamp(state.head, 0, report.heads.length - 1);
  state.query = clamp(state.query, 0, currentHead().view.rows - 1);
  state.key = clamp(state.key, 0, currentHead().view.columns - 1);
  for (const name of ['from', 'to']) state[name] = clamp(state[name], 0, Math.max(report.vocabulary.length - 1, 0));
  if (scheduled || changedSince.size === 0) return;
  scheduled = true;
  requestAnimationFrame(draw);
}

function draw() {
  scheduled = false;
  const changed = new Set(changedSince);
  changedSince.clear();
  const start = performance.now();
  const near = listeners.map(({node}) => !node?.isConnected || isNear(node));  // asked before anything is written
  for (const [i, listener] of listeners.entries()) {
    if (near[i]) {
      const all = new Set([...changed, ...listener.missed]);
      listener.missed.clear();
      listener.update(all);
    } else {
      for (const name of changed) listener.missed.add(name);
      drawLater();
    }
  }
  performance.measure('tapehead:draw', {start, end: performance.now()});
  writeAddress();
}

const drawAll = () => {
  for (const name of Object.keys(state)) changedSince.add(name);
  draw();
};

// --- the address: #step=24&head=decoder.0.1&query=5&key=2

const headKey = (head) => `${head.kind}.${head.layer}.${head.head}`;

let writing = 0;
function writeAddress() {
  clearTimeout(writing);  // browsers limit how often the address may change
  writing = setTimeout(() => {
    const words = new URLSearchParams({
      step: report.about.live && state.snapshot === report.snapshots.length - 1 ? 'last' : currentSnapshot().step,
      head: headKey(currentHead()),
      query: state.query,
      key: state.key
    });
    if (state.map !== 'weights') words.set('map', state.map);
    if (state.transpose) words.set('transpose', 1);
    if (state.ownScale) words.set('scale', 'own');
    if (state.temperature !== 1) words.set('temperature', state.temperature);
    if (state.causal !== null) words.set('causal', state.causal ? 1 : 0);
    if (state.circuit !== 'ov') words.set('circuit', state.circuit);
    for (const name of ['from', 'to']) if (state[name] !== 0) words.set(name, state[name]);
    history.replaceState(null, '', `#${words}`);
  }, 200);
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name, fallback) => {
    const value = Number(words.get(name) ?? NaN);
    return Number.isFinite(value) ? value : fallback;
  };
  const changes = {};
  const head = report.heads.find((h) => headKey(h) === words.get('head'));
  if (head) changes.head = head.index;
  if (words.has('step')) changes.snapshot = snapshotAtStep(number('step', Infinity));
  changes.query = Math.trunc(number('query', state.query));
  changes.key = Math.trunc(number('key', state.key));
  if (Object.hasOwn(kMaps, words.get('map') ?? '')) changes.map = words.get('map');
  changes.transpose = words.get('transpose') === '1';
  changes.ownScale = words.get('scale') === 'own';
  changes.temperature = clamp(number('temperature', 1), 0.1, 10);
  changes.causal = words.has('causal') ? words.get('causal') === '1' : null;
  changes.circuit = words.get('circuit') === 'qk' ? 'qk' : 'ov';
  for (const name of ['from', 'to']) changes[name] = Math.trunc(number(name, 0));
  go(changes);
}

// The last snapshot that is not after a step.
function snapshotAtStep(step) {
  let at = 0;
  for (const [i, snapshot] of report.snapshots.entries())
    if (snapshot.step <= step) at = i;
  return at;
}

// --- the first picture: the head that matches the rule best at the end, at a row that counts

function firstView() {
  const last = currentSnapshot();
  let best = -1, value = -1;
  for (const head of report.heads) {
    const match = measureAt(last, head, 'pattern_match');
    if (match > value) [best, value] = [head.index, match];
  }
  state.head = Math.max(best, 0);
  const ideal = currentHead().view.ideal;
  const row = ideal.findIndex((column) => column >= 0);
  state.query = Math.max(row, 0);
  state.key = row >= 0 ? ideal[row] : 0;
}

// --- elements: text is set as text, never as markup

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name === 'text') node.textContent = value;
    else if (name === 'class') node.className = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const svg = (tag, properties = {}, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(properties))
    if (name === 'text') node.textContent = value;
    else node.setAttribute(name, value);
  node.append(...children);
  return node;
};

// Under every figure of attention.
const kCaution = 'A weight says how much of a value is mixed in here. It does not explain the decision: the values, ' +
    'the output projection, the residual path and later layers matter too.';
const caution = () => element('p', {class: 'caution', text: kCaution});

// Of what is shown in the place of what was not computed here.
const staleAt = (detail) => `Not computed at this step: this is step ${grouped(report.snapshots[detail.snapshot].step)}, the nearest.`;

let sections = 0;
function section(title, note, ...children) {
  const id = `section-${++sections}`;
  return element('section', {'aria-labelledby': id}, element('h2', {id, text: title}),
                 note ? element('p', {class: 'note', text: note}) : null, ...children);
}
