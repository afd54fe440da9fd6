// While a run still trains: asks its server for what came since, and lets the page grow in place. Who looks at the newest
// moment goes on with it; who looks at an earlier one stays there.

function liveBar() {
  if (!report.about.live) return null;
  const text = element('p', {class: 'live', text: 'Live: this run is training.'});
  const ask = async () => {
    try {
      const answer = await fetch(`more?after=${report.snapshots.at(-1)?.step ?? -1}`);
      if (answer.ok) grow(await answer.json());
      text.textContent = `Live: step ${grouped(report.curves.step.at(-1) ?? 0)}.`;
      setTimeout(ask, 1000);
    } catch {
      text.setAttribute('role', 'status');  // the steps are not read out, the end is
      text.textContent = 'The training has ended, or was stopped. This page keeps what it has; report.html in the run folder holds all of it.';
    }
  };
  setTimeout(ask, 1000);
  return text;
}

function grow({snapshots, curves, bytes}) {
  const wasNewest = state.snapshot === report.snapshots.length - 1;
  const from = bytesOf(bytes);
  for (const snapshot of snapshots) {
    unpack(snapshot, from);
    report.snapshots.push(snapshot);
  }
  report.curves = curves;
  for (const redraw of growing) redraw();
  if (wasNewest) state.snapshot = report.snapshots.length - 1;
  drawAll();
}
