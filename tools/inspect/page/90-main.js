// The page from top to bottom, and the keys that work everywhere on it.

const {about} = report;

function header() {
  const learned = about.learned;
  const verdict = !learned ? null : element('p', {
    class: learned[0] >= 0.99 ? 'verdict good' : 'verdict',
    text: learned[0] >= 0.99 ? `Learned: ${percent(learned[0])} of ${grouped(about.heldOut)} unseen sequences right at step ${grouped(about.bestStep)}` :
                               `Not learned yet: ${percent(learned[0])} of ${grouped(about.heldOut)} unseen sequences right at step ${grouped(about.bestStep)}`
  });
  return element('header', {}, element('h1', {text: about.title}), about.summary ? element('p', {class: 'summary', text: about.summary}) : null,
                 element('p', {class: 'note', text: about.subtitle}), verdict);
}

function chip(text, kind, note) {
  return element('li', {class: `chip ${kind}`}, element('span', {text: shown(text)}), note ? element('small', {text: note}) : null);
}

// The shown sequence: what was given, what the rule wants, what the model says.
function exampleSection() {
  const {source, inputs, expected, predicted} = about.example;
  if (inputs.length === 0) return null;
  const row = (title, ...chips) => element('div', {class: 'tokens'}, element('h3', {text: title}), element('ol', {}, ...chips));
  const counted = expected.flatMap((token, i) => token ? [i] : []);
  const right = counted.filter((i) => expected[i] === predicted[i]).length;
  const rows = [];
  if (source.length) rows.push(row('The source', ...source.map((token) => chip(token, 'given'))));
  rows.push(row(source.length ? 'The decoder reads' : 'The model reads', ...inputs.map((token) => chip(token, 'given'))));
  if (counted.length) {
    rows.push(row('The rule answers', ...counted.map((i) => chip(expected[i], 'wanted'))));
    rows.push(row('The model says', ...counted.map((i) => {
      const same = expected[i] === predicted[i];
      return chip(predicted[i], same ? 'right' : 'wrong', same ? '✓ right' : '✗ wrong');
    })));
  }
  const text = counted.length ? `One sequence that training never drew. The trained model answers ${right} of ${counted.length} tokens as the rule does.` :
                                'The sequence that every map on this page shows.';
  return section('The task, worked', text, ...rows);
}

function modelSection() {
  const rows = about.parameters.map(([name, shape]) => element('tr', {}, element('th', {scope: 'row', text: name}),
      element('td', {class: 'number', text: shape.join(' × ')}), element('td', {class: 'number', text: grouped(shape.reduce((a, b) => a * b, 1))})));
  const table = element('table', {}, element('caption', {text: `${grouped(about.parameterCount)} numbers, each counted once`}),
      element('thead', {}, element('tr', {}, ...['parameter', 'shape', 'numbers'].map((text) => element('th', {scope: 'col', text})))), element('tbody', {}, ...rows));
  const code = (title, text) => element('div', {}, element('h3', {text: title}), element('pre', {tabindex: 0, role: 'region', 'aria-label': title}, element('code', {text})));
  return section('The model', null, about.command ? code('Make this page again', about.command) : null,
                 ...about.notes.map((text) => element('p', {class: 'note', text})),
                 rows.length ? element('details', {}, element('summary', {text: 'Parameters'}), element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Parameters'}, table)) : null,
                 about.config ? element('details', {}, element('summary', {text: 'Settings'}), code('config.toml', about.config)) : null);
}

// --- keys

const kKeys = [
  ['[ and ]', 'the moment before, the next one'], ['Shift + [ and ]', 'the first and the last moment'], ['h and j', 'the next head, the one before'],
  ['l', 'the same head of the next layer'], ['m', 'the next kind of map'], ['t', 'transpose'], ['arrows', 'on the map: move the cell'],
  ['Home, End, Page Up, Page Down', 'on the map: ends of a row, eight rows'], ['?', 'this list']
];

const keys = {on: true};

function helpDialog() {
  const box = element('input', {type: 'checkbox', id: 'keys-on', checked: true, onchange: () => keys.on = box.checked});
  const dialog = element('dialog', {'aria-labelledby': 'help-title'}, element('h2', {id: 'help-title', text: 'Keys'}),
      element('dl', {}, ...kKeys.flatMap(([key, text]) => [element('dt', {text: key}), element('dd', {text})])),
      element('label', {for: 'keys-on'}, box, 'Single keys work'),
      element('button', {type: 'button', text: 'Close', onclick: () => dialog.close()}));
  return dialog;
}

function nextHead(by) {
  return {head: (state.head + by + report.heads.length) % report.heads.length};
}

function nextLayer() {
  const {kind, layer, head} = currentHead();
  const same = report.heads.filter((h) => h.kind === kind && h.head === head);
  return {head: (same.find((h) => h.layer > layer) ?? same[0]).index};
}

function onKey(event, dialog) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== 'checkbox' && event.key.startsWith('Arrow')) return;
  if (event.target.tagName === 'SELECT' || dialog.open || !keys.on) return;
  const maps = Object.keys(kMaps);
  const actions = {
    '[': () => go({snapshot: state.snapshot - 1}),
    ']': () => go({snapshot: state.snapshot + 1}),
    '{': () => go({snapshot: 0}),
    '}': () => go({snapshot: report.snapshots.length - 1}),
    h: () => go(nextHead(1)),
    j: () => go(nextHead(-1)),
    l: () => go(nextLayer()),
    m: () => go({map: maps[(maps.indexOf(state.map) + 1) % maps.length]}),
    t: () => go({transpose: !state.transpose}),
    '?': () => dialog.showModal()
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}

// --- everything

function main() {
  firstView();
  const dialog = helpDialog();
  const help = element('button', {type: 'button', class: 'help', text: 'Keys ?', onclick: () => dialog.showModal()});
  const parts = [exampleSection(), trainingSection(), headsSection(), headSection(), ledgerSection(), ablationSection(), patchingSection(), measuresSection(),
                 lensSection(), circuitsSection(), modelSection()];
  document.getElementById('page').replaceWith(...[header(), liveBar(), cursorBar(), element('main', {}, ...parts.filter(Boolean)),
                                              element('footer', {}, help), dialog].filter(Boolean));
  document.addEventListener('keydown', (event) => onKey(event, dialog));
  window.addEventListener('hashchange', readAddress);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  readAddress();
  drawAll();
  document.documentElement.dataset.ready = 'true';
}

main();
