// The bar that holds the training cursor, and the curves that it moves over.

const kReasons = ['', 'kept because the loss dropped', 'the end of the run'];

function cursorBar() {
  const slider = element('input', {
    type: 'range',
    id: 'step',
    min: 0,
    'aria-label': 'Moment of training',
    oninput: () => go({snapshot: Number(slider.value)})
  });
  whenLonger(() => slider.max = Math.max(report.snapshots.length - 1, 0));
  const text = element('output', {class: 'moment', for: 'step'});
  const move = (by) => () => go({snapshot: state.snapshot + by});
  let timer = 0;
  const play = element('button', {type: 'button', class: 'play', 'aria-label': 'Play the training', text: '▶'});
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = '▶';
    play.setAttribute('aria-label', 'Play the training');
  };
  play.addEventListener('click', () => {
    if (timer) return stop();
    if (state.snapshot === report.snapshots.length - 1) go({snapshot: 0});
    play.textContent = '❚❚';
    play.setAttribute('aria-label', 'Pause');
    timer = setInterval(() => {
      if (state.snapshot >= report.snapshots.length - 1) stop();
      else go({snapshot: state.snapshot + 1});
    }, 140);
  });
  follow((changed) => {
    if (!changed.has('snapshot')) return;
    const snapshot = currentSnapshot();
    slider.value = state.snapshot;
    const words = [`step ${grouped(snapshot.step)}`];
    if (snapshot.loss !== null) words.push(`loss ${digits(snapshot.loss)}`);
    if (snapshot.exact !== null) words.push(`exact match ${percent(snapshot.exact)}`);
    slider.setAttribute('aria-valuetext', words.join(', '));
    const reason = kReasons[snapshot.reason];
    text.textContent = words.join(' · ') + (reason ? ` · ${reason}` : '');
  });
  if (report.snapshots.length < 2 && !report.about.live) return element('div', {class: 'cursor single'}, text);
  return element('nav', {class: 'cursor', 'aria-label': 'Training cursor'}, play,
                 element('button', {type: 'button', 'aria-label': 'Previous moment', text: '‹', onclick: move(-1)}), slider,
                 element('button', {type: 'button', 'aria-label': 'Next moment', text: '›', onclick: move(1)}), text);
}

// --- curves: x is log(1 + step), as snapshots are spaced

const kChart = {width: 460, height: 190, left: 50, right: 12, top: 12, bottom: 24};

class Chart {
  constructor(title, format, choose) {
    const {width, height} = kChart;
    this.format = format;
    this.node = svg('svg', {viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': title});
    this.node.addEventListener('pointerdown', (event) => {
      const area = this.node.getBoundingClientRect();
      choose(this.stepAt((event.clientX - area.left) / area.width * width));
    });
  }

  // lines: [{points: [[step, value]], class}]; a threshold is a level with its name
  draw(least, most, lines, threshold) {
    Object.assign(this, {least, most, lines});
    const {width, height, left, right, top, bottom} = kChart;
    this.lastStep = Math.max(1, ...lines.flatMap((line) => line.points.slice(-1).map((p) => p[0])),
                             ...report.snapshots.slice(-1).map((s) => s.step));
    this.cursor = svg('line', {class: 'cursor-line', y1: top, y2: height - bottom});
    this.dots = lines.map((line) => svg('circle', {class: `dot ${line.class}`, r: 4}));
    this.paths = lines.map((line) => svg('path', {class: `line ${line.class}`, d: this.path(line.points)}));
    const mark = (x, y, anchor, text) => svg('text', {class: 'tick-text', x, y, 'text-anchor': anchor, text});
    const parts = [];
    for (const value of [least, (least + most) / 2, most]) {
      const y = this.y(value);
      parts.push(svg('line', {class: 'tick', x1: left, x2: width - right, y1: y, y2: y}), mark(left - 6, y + 4, 'end', this.format(value)));
    }
    parts.push(mark(left, height - 6, 'middle', '0'));
    let before = left;
    for (const step of [1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000]) {
      const x = this.x(step);
      if (step > this.lastStep || x - before < 34 || x > this.x(this.lastStep) - 40) continue;
      before = x;
      parts.push(mark(x, height - 6, 'middle', grouped(step)));
    }
    parts.push(mark(this.x(this.lastStep), height - 6, 'end', grouped(this.lastStep)));
    if (threshold) {
      const y = this.y(threshold.level);
      parts.push(svg('line', {class: 'threshold', x1: left, x2: width - right, y1: y, y2: y}), mark(left + 4, y - 5, 'start', threshold.name));
    }
    this.node.replaceChildren(...parts, ...this.paths, this.cursor, ...this.dots);
  }

  x(step) {
    const {width, left, right} = kChart;
    return left + Math.log1p(step) / Math.log1p(this.lastStep) * (width - left - right);
  }
  stepAt(x) {
    const {width, left, right} = kChart;
    return Math.expm1(clamp((x - left) / (width - left - right), 0, 1) * Math.log1p(this.lastStep)) + 0.5;
  }
  y(value) {
    const {height, top, bottom} = kChart;
    const share = (clamp(value, this.least, this.most) - this.least) / (this.most - this.least || 1);
    return height - bottom - share * (height - top - bottom);
  }
  path(points) {
    let path = '', pen = 'M';
    for (const [step, value] of points) {
      if (value === null || Number.isNaN(value)) {
        pen = 'M';
        continue;
      }
      path += `${pen}${this.x(step).toFixed(1)} ${this.y(value).toFixed(1)}`;
      pen = 'L';
    }
    return path;
  }
  // `only`: the one line whose point is shown.
  moveTo(step, only) {
    const x = this.x(step);
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    for (const [i, line] of this.lines.entries()) {
      let point;
      for (const p of only === undefined || i === only ? line.points : [])
        if (p[0] <= step && p[1] !== null && !Number.isNaN(p[1])) point = p;
      this.dots[i].classList.toggle('hidden', !point);
      if (!point) continue;
      this.dots[i].setAttribute('cx', x);
      this.dots[i].setAttribute('cy', this.y(point[1]));
    }
  }
}

function figure(title, chart) {
  return element('figure', {class: 'curve'}, element('figcaption', {text: title}), chart.node);
}

function trainingSection() {
  const {curves, about: {live}} = report;
  const charts = [];
  if (live || curves.step.length > 1) {
    const chart = new Chart('Loss over training', (v) => v.toFixed(2), goToStep);
    whenLonger(() => {
      const losses = report.curves.step.map((step, i) => [step, report.curves.loss[i]]);
      chart.draw(0, Math.max(0.01, ...losses.map((p) => p[1] ?? 0)),
                 [{points: losses, class: 'first'}, {points: report.curves.evaluations.map((e) => [e[0], e[1]]), class: 'second'}]);
    });
    charts.push(['Loss, nats a counted token (line: training, dashed: unseen sequences)', chart]);
  }
  if (live || curves.evaluations.length > 0) {
    const chart = new Chart('Accuracy over training', (v) => percent(v).replace('.0', ''), goToStep);
    whenLonger(() => chart.draw(0, 1, [[3, 'first'], [2, 'second']].map(([column, kind]) =>
        ({points: report.curves.evaluations.map((e) => [e[0], e[column]]), class: kind}))));
    charts.push(['On unseen sequences: exact match (line), share of tokens right (dashed)', chart]);
  }
  if (charts.length === 0) return null;
  follow((changed) => {
    if (changed.has('snapshot')) for (const [, chart] of charts) chart.moveTo(currentSnapshot().step);
  }, charts[0][1].node);
  return section('Training', 'The horizontal axis is the step, on a logarithmic scale. Choose a point to move the cursor.',
                 element('div', {class: 'curves'}, ...charts.map(([title, chart]) => figure(title, chart))));
}

const goToStep = (step) => go({snapshot: snapshotAtStep(step)});
