// The bar that holds the training cursor, and the curves that it moves over.

const kReasons = ['', 'kept because the loss dropped', 'the end of the run'];

function cursorBar() {
  const slider = element('input', {
    type: 'range',
    id: 'step',
    min: 0,
    max: Math.max(report.snapshots.length - 1, 0),
    'aria-label': 'Moment of training',
    oninput: () => go({snapshot: Number(slider.value)})
  });
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
  if (report.snapshots.length < 2) return element('div', {class: 'cursor single'}, text);
  return element('nav', {class: 'cursor', 'aria-label': 'Training cursor'}, play,
                 element('button', {type: 'button', 'aria-label': 'Previous moment', text: '‹', onclick: move(-1)}), slider,
                 element('button', {type: 'button', 'aria-label': 'Next moment', text: '›', onclick: move(1)}), text);
}

// --- curves: x is log(1 + step), as snapshots are spaced

const kChart = {width: 460, height: 190, left: 50, right: 12, top: 12, bottom: 24};

class Chart {
  // lines: [{name, points: [[step, value]], class}]
  constructor(title, least, most, format, lines, choose) {
    this.lines = lines;
    this.least = least;
    this.most = most;
    const {width, height, left, right, top, bottom} = kChart;
    this.lastStep = Math.max(1, ...lines.flatMap((line) => line.points.slice(-1).map((p) => p[0])),
                             ...report.snapshots.slice(-1).map((s) => s.step));
    this.cursor = svg('line', {class: 'cursor-line', y1: top, y2: height - bottom});
    this.dots = lines.map((line) => svg('circle', {class: `dot ${line.class}`, r: 4}));
    this.node = svg('svg', {viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': title});
    for (const value of [least, (least + most) / 2, most]) {
      const y = this.y(value);
      this.node.append(svg('line', {class: 'tick', x1: left, x2: width - right, y1: y, y2: y}),
                       svg('text', {class: 'tick-text', x: left - 6, y: y + 4, 'text-anchor': 'end', text: format(value)}));
    }
    this.node.append(svg('text', {class: 'tick-text', x: left, y: height - 6, 'text-anchor': 'middle', text: '0'}));
    let before = left;
    for (const step of [1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000]) {
      const x = this.x(step);
      if (step > this.lastStep || x - before < 34 || x > this.x(this.lastStep) - 40) continue;
      before = x;
      this.node.append(svg('text', {class: 'tick-text', x, y: height - 6, 'text-anchor': 'middle', text: grouped(step)}));
    }
    this.node.append(svg('text', {
      class: 'tick-text',
      x: this.x(this.lastStep),
      y: height - 6,
      'text-anchor': 'end',
      text: grouped(this.lastStep)
    }));
    for (const line of lines) this.node.append(svg('path', {class: `line ${line.class}`, d: this.path(line.points)}));
    this.node.append(this.cursor, ...this.dots);
    this.node.addEventListener('pointerdown', (event) => {
      const area = this.node.getBoundingClientRect();
      const x = (event.clientX - area.left) / area.width * width;
      choose(this.stepAt(x));
    });
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
      if (only !== undefined && i !== only) continue;
      let point;
      for (const p of line.points)
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
  const {curves} = report;
  const losses = curves.step.map((step, i) => [step, curves.loss[i]]);
  const charts = [];
  if (losses.length > 1) {
    const most = Math.max(...losses.map((p) => p[1] ?? 0));
    const held = curves.evaluations.map((e) => [e[0], e[1]]);
    charts.push(['Loss, nats a counted token (line: training, dashed: unseen sequences)',
                 new Chart('Loss over training', 0, most, (v) => v.toFixed(2),
                           [{points: losses, class: 'first'}, {points: held, class: 'second'}], goToStep)]);
  }
  if (curves.evaluations.length > 0)
    charts.push(['On unseen sequences: exact match (line), share of tokens right (dashed)',
                 new Chart('Accuracy over training', 0, 1, (v) => percent(v).replace('.0', ''),
                           [{points: curves.evaluations.map((e) => [e[0], e[3]]), class: 'first'},
                            {points: curves.evaluations.map((e) => [e[0], e[2]]), class: 'second'}], goToStep)]);
  if (charts.length === 0) return null;
  follow((changed) => {
    if (changed.has('snapshot')) for (const [, chart] of charts) chart.moveTo(currentSnapshot().step);
  }, charts[0][1].node);
  return section('Training', 'The horizontal axis is the step, on a logarithmic scale. Choose a point to move the cursor.',
                 element('div', {class: 'curves'}, ...charts.map(([title, chart]) => figure(title, chart))));
}

const goToStep = (step) => go({snapshot: snapshotAtStep(step)});
