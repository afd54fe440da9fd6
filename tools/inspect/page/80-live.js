// While a run still trains: asks its server whether there is more to see, and then shows it from the same place.

function liveBar() {
  if (!report.about.live) return null;
  const text = element('p', {class: 'live', role: 'status', text: 'Live: this run is training.'});
  const newest = state.snapshot >= report.snapshots.length - 1;
  let step = -1;
  const ask = async () => {
    try {
      const answer = await (await fetch('state')).json();
      if (answer.step !== step) text.textContent = `Live: step ${grouped(answer.step)}.`;
      step = answer.step;
      // Only while nobody is in the middle of something: the page is made anew from the same address.
      if (answer.snapshots > report.snapshots.length && !document.hidden && newest === isNewest() && !isBusy()) return location.reload();
      setTimeout(ask, 1000);
    } catch {
      text.textContent = 'The training has ended, or was stopped. This page keeps what it has; report.html in the run folder holds all of it.';
    }
  };
  setTimeout(ask, 1000);
  return text;
}

const isNewest = () => state.snapshot >= report.snapshots.length - 1;
const isBusy = () => document.querySelector('dialog[open], details[open]') !== null || document.activeElement?.tagName === 'SELECT';
