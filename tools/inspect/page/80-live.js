// While a run still trains: asks its server for what came since, and lets the page grow in place. Who looks at the newest
// moment goes on with it; who looks at an earlier one stays there.

function liveBar() {
  if (!report.about.live) return null;
  const text = element('p', {class: 'live', text: 'Live: this run is training.'});
  const ask = async () => {
    try {
      const answer = await fetch(`more?after=${report.snapshots.at(-1)?.step ?? -1}`);
      const more = answer.ok ? await answer.json() : {};
      if (answer.ok) grow(more);
      if (more.done) return end('The training has ended.');
      text.textContent = `Live: step ${grouped(report.curves.step.at(-1) ?? 0)}.`;
      setTimeout(ask, 1000);
    } catch {
      end('The training has ended, or was stopped.');
    }
  };
  const end = (what) => {
    text.setAttribute('role', 'status');  // the steps are not read out, the end is
    text.textContent = `${what} This page keeps what it has; report.html in the run folder holds more: the ledger, ablation, evidence and circuits.`;
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
