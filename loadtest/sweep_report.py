# SPDX-License-Identifier: Apache-2.0
"""The pages that sweep.py writes: Markdown, and HTML in one file with its
pictures.
"""
import html

from sweep_table import pane_of, pane_table

PAGE_STYLE = """\
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1180px; margin: 2em auto;
       padding: 0 1em; background: #ffffff; color: #24292f; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 2em; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: 0.15em 0.7em; text-align: right; border-bottom: 1px solid #d8dee4; }
td:first-child, th:first-child { text-align: left; }
@media (prefers-color-scheme: dark) {
  body { background: #0d1117; color: #e6edf3; } td, th { border-color: #2b323b; }
}"""
NOTE = ("Rates count all files of the archive. A unit is 16 KiB of text: an unaligned range, in "
        "mode full an aligned one. Bold: on the frontier of its pane, where no other codec and "
        "size is both smaller and faster.")


def pane_title(device, mode):
    return f"{'Real disk' if device == 'real' else f'Modelled drive {device}'}, {mode.upper()}"


def panes(rows, devices, modes):
    """(title, rows) of the panes that have any."""
    for device in devices:
        for mode in modes:
            pane_rows = pane_of(rows, device, mode)
            if pane_rows:
                yield pane_title(device, mode), pane_rows


def markdown_page(rows, title, devices, modes):
    lines = [f"{title}.", "", NOTE]
    for heading, pane_rows in panes(rows, devices, modes):
        lines += ["", f"{heading}:", "", *pane_table(pane_rows)]
    return "\n".join(lines) + "\n"


def html_table(markdown_lines):
    """The HTML of a table in Markdown whose cells are text, some of it bold."""
    def cell(name, text):
        bold = text.startswith("**")
        text = html.escape(text.strip("*"))
        return f"<{name}>{f'<b>{text}</b>' if bold else text}</{name}>"

    def line(name, text):
        return "<tr>" + "".join(cell(name, part) for part in text.strip("| ").split(" | ")) + "</tr>"

    return "\n".join(["<table>", line("th", markdown_lines[0]),
                      *(line("td", text) for text in markdown_lines[2:]), "</table>"])


def html_page(rows, title, devices, modes, pictures):
    """`pictures`: SVGs by name, in the order in which they are shown."""
    parts = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width">',
             f"<title>{html.escape(title)}</title><style>\n{PAGE_STYLE}\n</style></head><body>",
             f"<h1>Archive size against access rate</h1><p>{html.escape(title)}. {NOTE}</p>",
             *pictures.values()]
    for heading, pane_rows in panes(rows, devices, modes):
        parts += [f"<h2>{html.escape(heading)}</h2>", html_table(pane_table(pane_rows))]
    return "\n".join([*parts, "</body></html>"]) + "\n"
