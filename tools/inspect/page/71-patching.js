// Patching: what one head alone carries over, when its output for the sequence of this page is put into another one.

function patchingSection() {
  const has = (detail) => detail.patching, {corrupt, example} = report.about;
  if (!corrupt || !report.details.some(has)) return null;
  const body = element('tbody'), stale = element('p', {class: 'stale'}), ends = element('p');
  const table = element('table', {class: 'patching'}, element('caption', {text: 'What each head alone recovers'}),
                        element('thead', {}, element('tr', {}, ...['head', 'recovered', 'as a bar'].map((text) => element('th', {scope: 'col', text})))), body);
  const tokens = ({source, inputs}) => (source.length ? source : inputs).map(shown).join(' ');
  const answers = ({expected}) => expected.filter(Boolean).map(shown).join(' ');
  const row = (head, recovered, most) => element('tr', {class: head.index === state.head ? 'chosen' : ''},
      element('th', {scope: 'row'}, element('button', {type: 'button', class: 'link', text: head.fullName, onclick: () => go({head: head.index})})),
      element('td', {class: 'number', text: signed(recovered, 3)}), element('td', {}, signedBar((recovered ?? 0) / most)));
  follow((changed) => {
    if (!changed.has('snapshot') && !changed.has('head')) return;
    const detail = nearestDetail(currentSnapshot(), has), old = currentSnapshot().detail !== detail;
    table.classList.toggle('old', old);
    stale.textContent = old ? staleAt(detail) : '';
    const [clean, other] = detail.patching;
    ends.textContent = `m is ${signed(clean, 3)} for the clean sequence and ${signed(other, 3)} for the corrupt one.`;
    const shares = detail.heads.map((head) => head.recovered), most = Math.max(1, ...shares.map((x) => Math.abs(x ?? 0)));
    body.replaceChildren(...report.heads.map((head, h) => row(head, shares[h], most)));
  }, body);
  return section('Put in from another sequence', 'The model reads a corrupt sequence, while one head keeps the output that it has for ' +
                 'the clean one. m is the logit of the clean answer less that of the corrupt answer, a mean over the rows whose answers ' +
                 'differ; shown is (patched − corrupt) / (clean − corrupt): 0 when the head changes nothing, 1 when it alone brings ' +
                 'the clean answers back.',
                 element('dl', {class: 'pair'}, element('dt', {text: 'clean'}), element('dd', {class: 'number', text: `${tokens(example)} → ${answers(example)}`}),
                         element('dt', {text: 'corrupt'}), element('dd', {class: 'number', text: `${tokens(corrupt)} → ${answers(corrupt)}`})),
                 ends, stale, element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Patching'}, table), caution());
}
