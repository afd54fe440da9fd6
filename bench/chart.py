"""Charts of a size against a cost, both logarithmic, as SVG: small, the same bytes for the same numbers, and readable on
light and dark pages alike."""
import math
from html import escape

WIDTH, HEIGHT, GAP = 380, 250, 20
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 34, 42
STYLE = """
  .page { fill: #ffffff } text { font: 12px sans-serif; fill: #1f2328 } .title { font-weight: bold }
  .grid { stroke: #d1d9e0; stroke-width: 1 } .data { stroke: #0969da; fill: none; stroke-width: 2 }
  .dot { fill: #0969da } .theory { stroke: #bc4c00; fill: none; stroke-width: 1.5; stroke-dasharray: 5 4 }
  .note { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #f0f6fc } .grid { stroke: #3d444d } .data { stroke: #4493f8 }
    .dot { fill: #4493f8 } .theory { stroke: #f0883e } .note { fill: #f0883e }
  }"""


def exponent(sizes, costs):
    """The slope of the line through the points' logarithms, by least squares."""
    x, y = [math.log(s) for s in sizes], [math.log(c) for c in costs]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def ticks(low, high):
    """Powers of ten within a range, or of two where there are too few of ten."""
    for base in (10, 2):
        found = [base**n for n in range(math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9) + 1)]
        if len(found) >= 2:
            return found
    return [low, high]


def panel(left, title, sizes, costs, theory):
    """One chart as SVG elements: points, and from the last one back a line of the exponent that theory gives."""
    low, high = min(costs) / 1.3, max(costs) * 1.3
    span_x = math.log(sizes[-1] / sizes[0])

    def x(size):
        return left + LEFT + (WIDTH - LEFT - RIGHT) * math.log(size / sizes[0]) / span_x

    def y(cost):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(cost / low) / math.log(high / low)

    out = [f'<text class="title" x="{left + LEFT}" y="20">{escape(title)}</text>']
    for cost in ticks(low, high):
        out += [f'<path class="grid" d="M{x(sizes[0]):.1f} {y(cost):.1f}H{x(sizes[-1]):.1f}"/>',
                f'<text text-anchor="end" x="{left + LEFT - 6}" y="{y(cost) + 4:.1f}">{cost if cost == int(cost) else f"{cost:.3g}"}</text>']
    for size in sizes[:: 2 if len(sizes) > 7 else 1]:
        out += [f'<text text-anchor="middle" x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 18}">{size}</text>']
    # The line of theory ends where it would leave the panel.
    start = sizes[0]
    if theory:
        edge = high if theory < 0 else low
        start = max(start, sizes[-1] * (edge / costs[-1]) ** (1 / theory))
    out.append(f'<path class="theory" d="M{x(start):.1f} {y(costs[-1] * (start / sizes[-1]) ** theory):.1f}'
               f'L{x(sizes[-1]):.1f} {y(costs[-1]):.1f}"/>')
    points = " ".join(f"{x(s):.1f},{y(c):.1f}" for s, c in zip(sizes, costs))
    out.append(f'<polyline class="data" points="{points}"/>')
    out += [f'<circle class="dot" cx="{x(s):.1f}" cy="{y(c):.1f}" r="3"><title>{s}: {c:.4g}</title></circle>'
            for s, c in zip(sizes, costs)]
    return out


def draw(label, sizes, panels):
    """An SVG of panels (title, costs, theory) side by side over the same sizes."""
    width = len(panels) * WIDTH + (len(panels) - 1) * GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
           'role="img">', f"<title>{escape(label)}</title>", f"<style>{STYLE}\n</style>",
           f'<rect class="page" width="{width}" height="{HEIGHT}"/>']
    for i, (title, costs, theory) in enumerate(panels):
        left = i * (WIDTH + GAP)
        out += panel(left, title, sizes, costs, theory)
        out += [f'<text text-anchor="middle" x="{left + (LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 6}">'
                f'{escape(label)}</text>',
                f'<text class="note" text-anchor="end" x="{left + WIDTH - RIGHT}" y="20">theory {theory:g}</text>']
    return "\n".join(out) + "\n</svg>\n"
