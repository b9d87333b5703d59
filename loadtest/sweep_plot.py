# SPDX-License-Identifier: Apache-2.0
"""Archive size against access rate, a pane for each device and mode: Figures 2
and 3 of "Access Time Tradeoffs in Archive Compression". An SVG that follows the
reader's light or dark setting.
"""
import html

from codec_plot import STYLE, Axis, LabelPlaces, colours_of, label_of, legend, marker, marker_size
from sweep_table import frontier_of, key_of, line_of, pane_of

PANE_WIDTH, PANE_HEIGHT = 330, 300
LEFT, RIGHT, TOP, BOTTOM = 40, 180, 76, 34
# Around each pane, for ticks and names of axes.
INNER_LEFT, INNER_TOP, INNER_BOTTOM, GAP = 58, 24, 42, 12
PANE_STYLE = STYLE + """
.line { fill: none; stroke-width: 1.3; opacity: 0.5; }
.pane { font-weight: 600; } .label { font-size: 10.5px; }"""
MODE_TITLES = {
    "full": "FULL: all in order",
    "batch": "BATCH: many at once",
    "random": "RANDOM: one after the other",
}


class Pane:
    """One set of axes; `column` and `row` count panes from the upper left one."""

    def __init__(self, rows, title, column, row, colours, block_sizes, dictionary_sizes):
        self.rows, self.title, self.colours = rows, title, colours
        self.block_sizes, self.dictionary_sizes = block_sizes, dictionary_sizes
        self.left = LEFT + column * (PANE_WIDTH + GAP) + INNER_LEFT
        self.right = LEFT + column * (PANE_WIDTH + GAP) + PANE_WIDTH
        self.top = TOP + row * (PANE_HEIGHT + GAP) + INNER_TOP
        self.bottom = TOP + row * (PANE_HEIGHT + GAP) + PANE_HEIGHT - INNER_BOTTOM
        self.x_axis = Axis([r["rate_percent"] for r in rows], self.left, self.right)
        self.y_axis = Axis([r["ranges_per_second"] for r in rows], self.bottom, self.top)

    def at(self, row):
        return self.x_axis(row["rate_percent"]), self.y_axis(row["ranges_per_second"])

    def axes(self):
        taken = None
        for value in self.x_axis.ticks():
            x = self.x_axis(value)
            yield f'<path class="grid" d="M{x:.1f} {self.top}V{self.bottom}"/>'
            if taken is None or x - taken > 34:
                taken = x
                yield (f'<text class="quiet" x="{x:.1f}" y="{self.bottom + 16}" '
                       f'text-anchor="middle">{value:g} %</text>')
        for value in self.y_axis.ticks():
            y = self.y_axis(value)
            yield f'<path class="grid" d="M{self.left} {y:.1f}H{self.right}"/>'
            yield (f'<text class="quiet" x="{self.left - 6}" y="{y + 4:.1f}" '
                   f'text-anchor="end">{value:,.0f}</text>')
        yield (f'<path class="axis" fill="none" '
               f'd="M{self.left} {self.top}V{self.bottom}H{self.right}"/>')
        yield (f'<text class="pane" x="{self.left}" y="{self.top - 8}">'
               f'{html.escape(self.title)}</text>')

    def lines(self):
        """Joins the block sizes of each codec and dictionary."""
        groups = {}
        for row in sorted(self.rows, key=lambda r: r["block_size_bytes"]):
            groups.setdefault(line_of(row), []).append(row)
        for (codec, _), rows in groups.items():
            if len(rows) > 1:
                points = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(self.at, rows))
                colour = self.colours[codec.split(":")[0]]
                yield f'<path class="line" stroke="{colour}" d="M{points}"/>'

    def frontier(self):
        """Steps: what lies below and to the right of them is beaten."""
        corners = [self.at(row) for row in frontier_of(self.rows)]
        path = f"M{self.right} {corners[0][1]:.1f}H{corners[0][0]:.1f}"
        for x, y in corners[1:]:
            path += f"V{y:.1f}H{x:.1f}"
        return f'<path class="frontier" d="{path}V{self.bottom}"/>'

    def points(self):
        best = {key_of(row) for row in frontier_of(self.rows)}
        places = LabelPlaces((self.left, self.top, self.right + 8, self.bottom))
        labels = []
        # The frontier last, so that nothing hides it.
        for row in sorted(self.rows, key=lambda row: key_of(row) in best):
            x, y = self.at(row)
            on_frontier = key_of(row) in best
            look = 'class="best"' if on_frontier else 'opacity="0.6"'
            size = marker_size(self.dictionary_sizes.index(row["dictionary_size_bytes"] or 0))
            tip = (f"{label_of(row)}: {row['rate_percent']:.2f} %, "
                   f"{row['ranges_per_second']:,.0f}/s")
            colour = self.colours[row["codec"].split(":")[0]]
            element = marker(self.block_sizes.index(row["block_size_bytes"]), x, y, size,
                             f'fill="{colour}" {look}>')
            closing = "</circle>" if element.startswith("<circle") else "</polygon>"
            yield f"{element}<title>{html.escape(tip)}</title>{closing}"
            place = places.place(x, y, row["codec"]) if on_frontier else None
            if place:
                labels.append(f'<text class="label" x="{place[0]:.1f}" y="{place[1]:.1f}" '
                              f'text-anchor="{place[2]}">{html.escape(row["codec"])}</text>')
        yield from labels

    def render(self):
        return [*self.axes(), *self.lines(), self.frontier(), *self.points()]


def render(rows, title, devices, modes):
    """The SVG of the panes that have rows: a line of panes for each device, a
    column for each mode."""
    colours = colours_of(rows)
    block_sizes = sorted({row["block_size_bytes"] for row in rows})
    dictionary_sizes = sorted({row["dictionary_size_bytes"] or 0 for row in rows})
    width = LEFT + len(modes) * (PANE_WIDTH + GAP) + RIGHT
    # The legend may be longer than the panes are high.
    entries = len(colours) + len(block_sizes) + len(dictionary_sizes) + 1
    height = max(TOP + len(devices) * (PANE_HEIGHT + GAP) + BOTTOM, TOP + 19 * entries + 80)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
             f"<title>{html.escape(title)}</title>", f"<style>\n{PANE_STYLE}\n</style>",
             f'<rect class="paper" width="{width}" height="{height}"/>',
             f'<text class="title" x="{LEFT}" y="30">{html.escape(title)}</text>',
             f'<text class="quiet" x="{LEFT}" y="50">across: archive on disk in % of the text (less '
             'is better); up: units of 16 KiB a second (more is better); both logarithmic</text>',
             *legend(colours, block_sizes, dictionary_sizes, width - RIGHT + 22, TOP + 34)]
    for line, device in enumerate(devices):
        for column, mode in enumerate(modes):
            pane_rows = pane_of(rows, device, mode)
            if pane_rows:
                name = "real disk" if device == "real" else f"model {device}"
                lines += Pane(pane_rows, f"{name}, {MODE_TITLES[mode]}", column, line, colours,
                              block_sizes, dictionary_sizes).render()
    return "\n".join([*lines, "</svg>"]) + "\n"
