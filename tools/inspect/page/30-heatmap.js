// One matrix drawn on a canvas with its axes named, and an ARIA grid over it: one tab stop, arrow keys move the cell.

// Rows that a person reads from the top: queries, unless transposed.
class Heatmap {
  // `describe(query, key)` gives the words for one cell; `choose` is called with the cell that was picked.
  constructor(name, describe, choose, title = 'Attention of one head') {
    this.describe = describe;
    this.choose = choose;
    this.canvas = element('canvas', {class: 'map', 'aria-hidden': 'true'});
    this.cell = element('div', {role: 'gridcell', id: `cell-${name}`, 'aria-selected': 'true'});
    this.row = element('div', {role: 'row'}, this.cell);
    this.grid = element('div', {
      role: 'grid',
      class: 'grid-over',
      tabindex: 0,
      'aria-label': title,
      'aria-activedescendant': `cell-${name}`
    }, this.row);
    this.readout = element('p', {class: 'readout', 'aria-live': 'polite'});
    this.node = element('div', {class: 'heatmap'}, this.canvas, this.grid);
    this.grid.addEventListener('keydown', (event) => this.onKey(event));
    this.grid.addEventListener('pointermove', (event) => this.onPointer(event, false));
    this.grid.addEventListener('pointerdown', (event) => this.onPointer(event, true));
    this.grid.addEventListener('pointerleave', () => this.say(this.spec.query, this.spec.key));
    // Told of the width, draw() never has to ask for it, which would lay out the page in the middle of a step.
    new ResizeObserver(([{contentRect: {width}}]) => {
      if (width === this.room || width === 0) return;
      this.room = width;
      drawAll();
    }).observe(this.node);
  }

  // spec: view, value(slot) of a visible cell (and packed, when it is a weight on the fixed scale), least and most with their colours(share) and scale of pixels, text(value),
  // query, key, transpose, ideal, wanted (largest size of a cell)
  draw(spec) {
    this.spec = spec;
    this.room ||= this.node.getBoundingClientRect().width;
    this.paint();
    const {view, query, key, transpose} = spec;
    this.grid.setAttribute('aria-rowcount', transpose ? view.columns : view.rows);
    this.grid.setAttribute('aria-colcount', transpose ? view.rows : view.columns);
    this.row.setAttribute('aria-rowindex', (transpose ? key : query) + 1);
    this.cell.setAttribute('aria-colindex', (transpose ? query : key) + 1);
    this.say(query, key);
  }

  say(query, key) {
    const text = this.describe(query, key);
    if (this.cell.textContent !== text) this.cell.textContent = text;
    if (this.readout.textContent !== text) this.readout.textContent = text;
  }

  // Down: queries, or keys when transposed; across: the others.
  get down() {
    return this.spec.transpose ? this.spec.view.columns : this.spec.view.rows;
  }
  get across() {
    return this.spec.transpose ? this.spec.view.rows : this.spec.view.columns;
  }

  layOut(context) {
    const {view, transpose} = this.spec;
    const width = Math.max(this.room, 160);
    context.font = this.font;
    const names = (tokens) => tokens.slice(0, 400).map((_, i) => label(tokens, i));
    const longest = (tokens) => Math.max(...names(tokens).map((n) => context.measureText(n).width));
    const left = transpose ? view.columnTokens : view.rowTokens, top = transpose ? view.rowTokens : view.columnTokens;
    const gutterMost = Math.min(width / 4, 110);
    this.gutter = Math.ceil(Math.min(longest(left), gutterMost)) + 10;
    this.header = Math.ceil(Math.min(longest(top), 90)) + 10;
    const size = (width - this.gutter - 2) / this.across;
    this.size = size >= 4 ? Math.floor(Math.min(size, this.spec.wanted)) : size;
    this.leftTokens = left;
    this.topTokens = top;
    this.width = Math.ceil(this.gutter + this.size * this.across) + 2;
    this.height = Math.ceil(this.header + this.size * this.down) + 2;
  }

  // The axes stay as they are while only the weights change: that is what a step of the slider costs.
  paint() {
    const ratio = window.devicePixelRatio || 1, dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const {view, query, key, transpose} = this.spec, {canvas} = this;
    const axes = [view, query, key, transpose, this.room, ratio, dark];
    const context = canvas.getContext('2d');
    if (!this.axes?.every((part, i) => part === axes[i])) {
      this.axes = axes;
      this.style = getComputedStyle(document.documentElement);
      this.font = `12px ${this.style.getPropertyValue('--mono')}`;
      this.layOut(context);
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${this.height}px`;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.font = this.font;  // once: setting it makes the browser style the page
      this.paintNames(context);
      this.hatch = hatch(context);
      this.lines = this.style.getPropertyValue('--surface');
      this.small = new OffscreenCanvas(this.across, this.down);
      this.image = new ImageData(this.across, this.down);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.places = transpose ? view.cells.map((cell) => cell % view.columns * view.rows + Math.floor(cell / view.columns)) : view.cells;
    }
    const rim = 2;  // the cursor's box reaches so far over the edge
    context.clearRect(this.gutter - rim, this.header - rim, this.size * this.across + 2 * rim, this.size * this.down + 2 * rim);
    this.paintCells(context);
    this.paintMarks(context);
  }

  // The matrix as an image of one pixel a cell, enlarged: fast for any number of cells.
  paintCells(context) {
    const {value, scale, least, most, packed} = this.spec, {pixels, places} = this;
    const factor = 255 / (most - least || 1);
    if (packed) for (let slot = 0; slot < places.length; ++slot) pixels[places[slot]] = weightPixels[packed[slot]];
    else for (let slot = 0; slot < places.length; ++slot) {
      const x = value(slot);
      pixels[places[slot]] = Number.isNaN(x) ? scale[256] : scale[Math.round(clamp((x - least) * factor, 0, 255))];
    }
    this.small.getContext('2d').putImageData(this.image, 0, 0);
    const w = this.size * this.across, h = this.size * this.down;
    context.fillStyle = this.hatch;
    context.fillRect(this.gutter, this.header, w, h);
    context.imageSmoothingEnabled = this.size < 1;
    context.drawImage(this.small, this.gutter, this.header, w, h);
    if (this.size >= 8) this.paintLines(context);
    if (this.size >= 26) this.paintNumbers(context);
  }

  paintLines(context) {
    context.fillStyle = this.lines;
    const w = this.size * this.across, h = this.size * this.down;
    for (let i = 1; i < this.across; ++i) context.fillRect(this.gutter + i * this.size - 0.5, this.header, 1, h);
    for (let i = 1; i < this.down; ++i) context.fillRect(this.gutter, this.header + i * this.size - 0.5, w, 1);
  }

  paintNumbers(context) {
    const {view, value, colours, least, most, text, transpose} = this.spec;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (const [slot, cell] of view.cells.entries()) {
      const query = Math.floor(cell / view.columns), key = cell % view.columns;
      const x = value(slot);
      const words = Number.isNaN(x) ? '!' : text(x);
      if (!words) continue;
      context.fillStyle = inkOn(Number.isNaN(x) ? kBroken : colours((x - least) / (most - least || 1)));
      const [column, row] = transpose ? [query, key] : [key, query];
      context.fillText(words, this.gutter + (column + 0.5) * this.size, this.header + (row + 0.5) * this.size + 0.5,
                       this.size - 2);
    }
  }

  paintNames(context) {
    const every = (size) => Math.max(1, Math.ceil(13 / size));
    context.textBaseline = 'middle';
    const ink = this.style.getPropertyValue('--ink'), strong = this.style.getPropertyValue('--accent');
    const {query, key, transpose} = this.spec;
    const [row, column] = transpose ? [key, query] : [query, key];
    const write = (index, chosen, all, step) => {
      context.fillStyle = index === chosen ? strong : ink;
      return index === chosen || (index % step === 0 && (Math.abs(index - chosen) >= step || all));
    };
    context.textAlign = 'right';
    for (let i = 0, step = every(this.size); i < this.down; ++i)
      if (write(i, row, step === 1, step))
        context.fillText(label(this.leftTokens, i), this.gutter - 6, this.header + (i + 0.5) * this.size, this.gutter - 8);
    context.textAlign = 'left';
    for (let i = 0, step = every(this.size); i < this.across; ++i) {
      if (!write(i, column, step === 1, step)) continue;
      context.save();
      context.translate(this.gutter + (i + 0.5) * this.size, this.header - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(label(this.topTokens, i), 0, 0, this.header - 8);
      context.restore();
    }
  }

  // The cells that the rule names, and the cursor: each in two strokes, to stand out on any colour.
  paintMarks(context) {
    const {ideal, query, key, transpose} = this.spec;
    const box = (q, k, inset, outer, inner, width) => {
      const [column, row] = transpose ? [q, k] : [k, q];
      const x = this.gutter + column * this.size, y = this.header + row * this.size;
      for (const [stroke, line] of [[outer, width + 2], [inner, width]]) {
        context.strokeStyle = stroke;
        context.lineWidth = line;
        context.strokeRect(x + inset, y + inset, Math.max(this.size - 2 * inset, 1), Math.max(this.size - 2 * inset, 1));
      }
    };
    if (ideal && this.size >= 7)
      for (const [q, k] of ideal.entries())
        if (k >= 0) box(q, k, 3, '#000', '#fff', 1);
    box(query, key, 0, '#000', '#fff', 2);
  }

  // --- moving

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {query, key, transpose} = this.spec;
    let [row, column] = transpose ? [key, query] : [query, key];
    const page = 8;
    switch (event.key) {
      case 'ArrowUp': row -= 1; break;
      case 'ArrowDown': row += 1; break;
      case 'ArrowLeft': column -= 1; break;
      case 'ArrowRight': column += 1; break;
      case 'PageUp': row -= page; break;
      case 'PageDown': row += page; break;
      case 'Home': column = 0; break;
      case 'End': column = this.across - 1; break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
    row = clamp(row, 0, this.down - 1);
    column = clamp(column, 0, this.across - 1);
    [this.spec.query, this.spec.key] = transpose ? [column, row] : [row, column];  // a second key may come before the frame
    this.choose(this.spec.query, this.spec.key);
  }

  onPointer(event, chooses) {
    const area = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - area.left - this.gutter) / this.size);
    const row = Math.floor((event.clientY - area.top - this.header) / this.size);
    if (row < 0 || column < 0 || row >= this.down || column >= this.across) return;
    const [query, key] = this.spec.transpose ? [column, row] : [row, column];
    if (chooses) this.choose(query, key);
    else this.say(query, key);
  }
}
