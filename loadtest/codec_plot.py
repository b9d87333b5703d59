# SPDX-License-Identifier: Apache-2.0
"""The Pareto frontier as a picture: rate against random access, both axes
logarithmic, for one machine (Figure 2 of "Access Time Tradeoffs in Archive
Compression"). An SVG that follows the reader's light or dark setting.
"""
import html
import math

from codec_table import block_frontier, format_size, key_of

WIDTH, HEIGHT = 1000, 660
LEFT, RIGHT, TOP, BOTTOM = 78, 190, 56, 60
# One for each codec; of middling lightness, so that they show on white and on
# black.
COLOURS = ["#d9342b", "#2f7ed8", "#2a9d5c", "#c7761a", "#8e5bd0", "#17a2b0", "#d6499a",
           "#7d8a1f", "#a0643c", "#5f7f9e", "#e06c4f", "#3f9f94", "#9a6fa0", "#8c8c8c"]
STYLE = """\
svg { font: 13px system-ui, sans-serif; } .paper { fill: #ffffff; }
text { fill: #24292f; } .quiet { fill: #57606a; font-size: 12px; }
.title { font-size: 17px; font-weight: 600; }
.grid { stroke: #d8dee4; } .axis { stroke: #57606a; }
.frontier { fill: none; stroke: #24292f; stroke-width: 1.6; stroke-dasharray: 6 4; }
.best { stroke: #24292f; stroke-width: 1.4; }
.label { font-size: 11.5px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #0d1117; } text { fill: #e6edf3; } .quiet { fill: #9198a1; }
  .grid { stroke: #2b323b; } .axis { stroke: #9198a1; }
  .frontier, .best { stroke: #e6edf3; } .label { stroke: #0d1117; }
}"""


def ticks(low, high):
    """Round numbers within [low, high] for a logarithmic axis: 1, 2, 5 times a
    power of ten, and more of them where these would be fewer than six."""
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        found = [step * 10.0 ** power
                 for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
                 for step in steps if low <= step * 10.0 ** power <= high * 1.0001]
        if len(found) >= 6:
            break
    return found


class Axis:
    """Maps values to positions, with a margin around the extremes."""

    def __init__(self, values, begin, end):
        low, high = min(values), max(values)
        margin = (high / low) ** 0.1 * 1.03
        self.low, self.high = low / margin, high * margin
        self.begin, self.end = begin, end

    def __call__(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        return ticks(self.low, self.high)


def marker(shape, x, y, size, attributes):
    """`shape` counts the block sizes from the smallest."""
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" {attributes}'
    corners = {1: [(-1, -1), (1, -1), (1, 1), (-1, 1)], 2: [(0, -1.2), (1.15, 0.9), (-1.15, 0.9)]
               }.get(shape, [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)])
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {attributes}'


def label_of(row):
    parts = [row["codec"], format_size(row["block_size_bytes"])]
    if row["dictionary_size_bytes"]:
        parts.append(f"dict {format_size(row['dictionary_size_bytes'])}")
    return " · ".join(parts)


class LabelPlaces:
    """Keeps labels apart, within `bounds` (left, top, right, bottom). To the right
    of and below a point of the frontier there is nothing else."""

    def __init__(self, bounds=(LEFT, TOP, WIDTH - RIGHT + 12, HEIGHT - BOTTOM)):
        self.bounds = bounds
        self.taken = []

    def place(self, x, y, text):
        """(x, y, anchor) of the first free place next to the point; None if there
        is none."""
        width = 6.1 * len(text)
        for dx, dy in ((9, 15), (9, 4), (9, 29), (9, 43), (-9, -8), (-9, 22)):
            left = x + dx if dx > 0 else x + dx - width
            box = (left, y + dy - 11, left + width, y + dy + 3)
            left_most, top, right_most, bottom = self.bounds
            if box[0] < left_most or box[2] > right_most or box[1] < top or box[3] > bottom:
                continue
            if all(box[2] < other[0] or other[2] < box[0] or box[3] < other[1] or
                   other[3] < box[1] for other in self.taken):
                self.taken.append(box)
                return x + dx, y + dy, "start" if dx > 0 else "end"
        return None


def axes(x_axis, y_axis):
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in x_axis.ticks():
        x = x_axis(value)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>'
        yield (f'<text class="quiet" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">'
               f'{value:,.0f}</text>')
    for value in y_axis.ticks():
        y = y_axis(value)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield (f'<text class="quiet" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
               f'{value:g} %</text>')
    yield f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    middle = (TOP + bottom) / 2
    yield (f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 16}" text-anchor="middle">'
           'random unaligned 16 KiB ranges a second, one thread, in memory (more is better)</text>')
    yield (f'<text transform="translate(20 {middle:.0f}) rotate(-90)" text-anchor="middle">'
           'size in % of the text, dictionary and index included (less is better)</text>')


def legend(colours, block_sizes, dictionary_sizes, x=WIDTH - RIGHT + 22, y=TOP + 12):
    """Of codecs, block sizes (by shape), dictionaries (by size) and the frontier."""

    def entry(mark, text, quiet=""):
        nonlocal y
        line = f'{mark}<text{quiet} x="{x + 16}" y="{y}">{html.escape(text)}</text>'
        y += 19
        return line

    for name, colour in colours.items():
        yield entry(marker(0, x + 4, y - 4, 5, f'fill="{colour}"/>'), name)
    y += 10
    for shape, size in enumerate(block_sizes):
        yield entry(marker(shape, x + 4, y - 4, 5, 'class="axis" fill="none"/>'),
                    f"{format_size(size)} blocks")
    y += 10
    for rank, size in enumerate(dictionary_sizes):
        text = f"{format_size(size)} dictionary" if size else "no dictionary"
        yield entry(marker(0, x + 4, y - 4, marker_size(rank), 'class="axis" fill="none"/>'), text)
    y += 10
    yield entry(f'<path class="frontier" d="M{x - 4} {y - 4}H{x + 12}"/>', "Pareto frontier")


def colours_of(rows):
    """{name of a codec: its colour}, in the order of the rows."""
    names = dict.fromkeys(row["codec"].split(":")[0] for row in rows)
    # The first colour, which stands out, is the flagship's.
    names = sorted(names, key=lambda name: name != "rlz")
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def marker_size(rank):
    """`rank` counts the dictionary sizes from the smallest."""
    return 3.2 + 1.3 * rank


def frontier_path(frontier, x_axis, y_axis):
    """Steps: what lies above and left of them is beaten. `frontier` by falling x."""
    corners = [(x_axis(row["ranges_per_second"]), y_axis(row["rate_percent"]))
               for row in frontier]
    path = f"M{corners[0][0]:.1f} {TOP}V{corners[0][1]:.1f}"
    for x, y in corners[1:]:
        path += f"H{x:.1f}V{y:.1f}"
    return f'<path class="frontier" d="{path}H{LEFT}"/>'


def render(rows, title):
    """The SVG of all rows of kind `block` that have a rate and ranges a second."""
    rows = [row for row in rows if row["kind"] == "block" and row["ranges_per_second"]]
    frontier = block_frontier(rows)
    best = {key_of(row) for row in frontier}
    x_axis = Axis([row["ranges_per_second"] for row in rows], LEFT, WIDTH - RIGHT)
    y_axis = Axis([row["rate_percent"] for row in rows], HEIGHT - BOTTOM, TOP)
    colours = colours_of(rows)
    block_sizes = sorted({row["block_size_bytes"] for row in rows})
    dictionary_sizes = sorted({row["dictionary_size_bytes"] or 0 for row in rows})
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
             f"<title>{html.escape(title)}</title>", f"<style>\n{STYLE}\n</style>",
             f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
             f'<text class="title" x="{LEFT}" y="32">{html.escape(title)}</text>',
             *axes(x_axis, y_axis), *legend(colours, block_sizes, dictionary_sizes),
             frontier_path(frontier, x_axis, y_axis)]
    places = LabelPlaces()
    labels = []
    # The frontier last, so that nothing hides it.
    for row in sorted(rows, key=lambda row: key_of(row) in best):
        x, y = x_axis(row["ranges_per_second"]), y_axis(row["rate_percent"])
        on_frontier = key_of(row) in best
        colour = colours[row["codec"].split(":")[0]]
        look = 'class="best"' if on_frontier else 'opacity="0.55"'
        size = marker_size(dictionary_sizes.index(row["dictionary_size_bytes"] or 0))
        tip = f"{label_of(row)}: {row['rate_percent']:.2f} %, {row['ranges_per_second']:,.0f}/s"
        element = marker(block_sizes.index(row["block_size_bytes"]), x, y, size,
                         f'fill="{colour}" {look}>')
        closing = "</circle>" if element.startswith("<circle") else "</polygon>"
        lines.append(f"{element}<title>{html.escape(tip)}</title>{closing}")
        place = places.place(x, y, label_of(row)) if on_frontier else None
        if place:
            labels.append(f'<text class="label" x="{place[0]:.1f}" y="{place[1]:.1f}" '
                          f'text-anchor="{place[2]}">{html.escape(label_of(row))}</text>')
    return "\n".join([*lines, *labels, "</svg>"]) + "\n"
