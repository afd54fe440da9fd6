// Colours of numbers. Weights: viridis, which rises evenly in lightness (Smith and van der Walt 2015), on the fixed
// scale [0, 1]. Signed numbers: blue below 0, orange above, symmetric; no red against green.

const kViridis = [
  [68, 1, 84], [72, 26, 108], [71, 47, 125], [65, 68, 135], [57, 86, 140], [49, 104, 142], [42, 120, 142],
  [35, 136, 142], [31, 152, 139], [34, 168, 132], [53, 183, 121], [84, 197, 104], [122, 209, 81], [165, 219, 54],
  [210, 226, 27], [253, 231, 37]
];
const kDiverging = [[5, 69, 137], [55, 131, 187], [150, 196, 223], [244, 244, 242], [246, 190, 122], [219, 118, 27],
                    [138, 62, 2]];
const kBroken = [255, 0, 170];

function mix(anchors, x) {
  const at = clamp(x, 0, 1) * (anchors.length - 1);
  const i = Math.min(Math.floor(at), anchors.length - 2);
  const t = at - i;
  return anchors[i].map((c, channel) => Math.round(c + (anchors[i + 1][channel] - c) * t));
}

const viridis = (x) => Number.isNaN(x) ? kBroken : mix(kViridis, x);
const diverging = (x) => Number.isNaN(x) ? kBroken : mix(kDiverging, (x + 1) / 2);  // x in [-1, 1]
const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

// Black or white, whichever stands out more.
function inkOn(colour) {
  const light = colour.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.179 ? '#000' : '#fff';
}

// Pixels as the bytes of an image lie in memory: 256 colours from the least to the greatest, then the broken one.
function pixelsOf(colours) {
  const pixels = new Uint8ClampedArray(4 * 257);
  for (let i = 0; i < 256; ++i) pixels.set([...colours(i / 255), 255], 4 * i);
  pixels.set([...kBroken, 255], 4 * 256);
  return new Uint32Array(pixels.buffer);
}
const weightScale = pixelsOf(viridis), signedScale = pixelsOf((x) => diverging(2 * x - 1));

// The pixel of every 16-bit weight.
const weightPixels = (() => {
  const pixels = new Uint32Array(65536);
  for (let i = 0; i < 65536; ++i) pixels[i] = weightScale[i >> 8];
  pixels[kNoWeight] = weightScale[256];
  return pixels;
})();

const kHatch = (() => {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  return tile;
})();

// Diagonal lines, for what is masked: never the colour of 0.
function hatch(context) {
  const tile = kHatch.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  tile.fillStyle = style.getPropertyValue('--masked');
  tile.fillRect(0, 0, 6, 6);
  tile.strokeStyle = style.getPropertyValue('--masked-line');
  tile.lineWidth = 1;
  tile.beginPath();
  for (const x of [-6, 0, 6]) {
    tile.moveTo(x, 6);
    tile.lineTo(x + 6, 0);
  }
  tile.stroke();
  return context.createPattern(kHatch, 'repeat');
}

// A strip of colours with its numbers, as a legend.
function legend(colours, least, most, text, marks) {
  const strip = element('canvas', {class: 'strip', width: 128, height: 1, 'aria-hidden': 'true'});
  const context = strip.getContext('2d');
  for (let i = 0; i < 128; ++i) {
    context.fillStyle = css(colours(i / 127));
    context.fillRect(i, 0, 1, 1);
  }
  return element('div', {class: 'legend'}, element('span', {text}),
                 element('span', {class: 'scale'}, element('span', {class: 'number', text: least}), strip, element('span', {class: 'number', text: most})),
                 ...marks.map(([kind, name]) => element('span', {class: 'mark'}, element('i', {class: kind}), name)));
}
