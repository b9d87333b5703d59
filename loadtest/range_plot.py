# SPDX-License-Identifier: Apache-2.0
"""Panes of curves, one below the other with their legends, as an SVG that follows the
reader's light or dark setting.
"""
import dataclasses
import html

from codec_plot import COLOURS, STYLE, Axis

WIDTH, PANE_HEIGHT = 900, 300
LEFT, RIGHT, TOP = 70, 200, 50
# Within a pane's height.
TITLE_HEIGHT, BELOW = 30, 46
PANE_STYLE = STYLE + """
.curve { fill: none; stroke-width: 1.8; } .pane { font-weight: 600; }"""


@dataclasses.dataclass
class Pane:
    title: str
    x_name: str
    # (name, [(x, y), ...]) of each.
    curves: list
    # Of x, of y.
    is_logarithmic: tuple


class LinearAxis:
    """As codec_plot's Axis, for values that may be 0 or less."""

    def __init__(self, values, begin, end):
        self.low, self.high = min(0, *values), max(values)
        if self.high == self.low:
            self.high += 1
        self.begin, self.end = begin, end

    def __call__(self, value):
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        step = 1e-3
        while (self.high - self.low) / step > 8:
            # 1, 2, 5, 10...
            step *= 2.5 if f"{step:e}".startswith("2") else 2
        first = -int(-self.low / step)
        return [step * i for i in range(first, int(self.high / step) + 1)]


def axis(is_logarithmic, values, begin, end):
    return (Axis if is_logarithmic else LinearAxis)(values, begin, end)


def render_pane(pane, top):
    upper, bottom, right = top + TITLE_HEIGHT, top + PANE_HEIGHT - BELOW, WIDTH - RIGHT
    points = [point for _, curve in pane.curves for point in curve]
    x_axis = axis(pane.is_logarithmic[0], [x for x, _ in points], LEFT, right)
    y_axis = axis(pane.is_logarithmic[1], [y for _, y in points], bottom, upper)
    yield f'<text class="pane" x="{LEFT}" y="{upper - 10}">{html.escape(pane.title)}</text>'
    for value in x_axis.ticks():
        x = x_axis(value)
        yield f'<path class="grid" d="M{x:.1f} {upper}V{bottom}"/>'
        yield (f'<text class="quiet" x="{x:.1f}" y="{bottom + 16}" '
               f'text-anchor="middle">{value:,g}</text>')
    for value in y_axis.ticks():
        y = y_axis(value)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield (f'<text class="quiet" x="{LEFT - 6}" y="{y + 4:.1f}" '
               f'text-anchor="end">{value:,g}</text>')
    yield f'<path class="axis" fill="none" d="M{LEFT} {upper}V{bottom}H{right}"/>'
    yield (f'<text class="quiet" x="{(LEFT + right) / 2:.0f}" y="{bottom + 34}" '
           f'text-anchor="middle">{html.escape(pane.x_name)}</text>')
    for rank, (name, curve) in enumerate(pane.curves):
        colour = COLOURS[rank % len(COLOURS)]
        path = "L".join(f"{x_axis(x):.1f} {y_axis(y):.1f}" for x, y in curve)
        y = upper + 12 + 20 * rank
        yield f'<path class="curve" stroke="{colour}" d="M{path}"/>'
        yield f'<path class="curve" stroke="{colour}" d="M{right + 16} {y - 4}h18"/>'
        yield f'<text x="{right + 40}" y="{y}">{html.escape(name)}</text>'


def render(title, panes):
    """The SVG."""
    height = TOP + PANE_HEIGHT * len(panes)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
             f"<title>{html.escape(title)}</title>", f"<style>\n{PANE_STYLE}\n</style>",
             f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
             f'<text class="title" x="{LEFT}" y="30">{html.escape(title)}</text>']
    for rank, pane in enumerate(panes):
        lines += render_pane(pane, TOP + PANE_HEIGHT * rank)
    return "\n".join([*lines, "</svg>"]) + "\n"
