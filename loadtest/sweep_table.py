# SPDX-License-Identifier: Apache-2.0
"""What sweep.py computes from what it measured: cells, their keys, the Pareto
frontier of each pane, tables.

A row is a dict with the keys COLUMNS; a value that was not measured is None.
"""
import itertools

from codec_table import format_number, format_size, markdown, pareto_frontier

COLUMNS = [
    "device",                   # real, or the name of a modelled drive
    "mode",                     # full, batch or random
    "codec",                    # name and level
    "block_size_bytes",
    "dictionary_size_bytes",    # as asked for; empty without dictionary
    "text_bytes",
    "in_flight",                # calls under way, of mode random
    "batch_size",               # ranges handed over at once, of mode batch
    "stored_bytes",             # of all files of the archive
    "rate_percent",             # the same, of the text
    "requests",                 # empty for mode full
    "seconds",
    "ranges_per_second",        # units of 16 KiB; of mode full aligned ones
    "mb_per_second",            # of text
    "p50_ms",
    "p99_ms",
    "cache_hits_percent",       # of blocks that the server needed
    "device_reads",
    "device_read_bytes",
]
# What a row is known by: it is not measured again.
KEY = ("device", "mode", "codec", "block_size_bytes", "dictionary_size_bytes", "text_bytes",
       "in_flight", "batch_size")
TEXT_COLUMNS = {"device", "mode", "codec"}
# A group of rows that lie on one line of a picture: block sizes of one codec.
LINE = ("codec", "dictionary_size_bytes")


def key_of(row):
    return tuple(row.get(column) or None for column in KEY)


def line_of(row):
    return tuple(row.get(column) or None for column in LINE)


def archives_of(specs, needs_dictionary, block_sizes, dictionary_sizes):
    """(codec, block size, dictionary size or None) of all archives, so that those
    of one codec come together."""
    for spec in specs:
        sizes = dictionary_sizes if needs_dictionary(spec) else [None]
        for dictionary_size, block_size in itertools.product(sizes, block_sizes):
            yield spec, block_size, dictionary_size


def pane_of(rows, device, mode):
    return [row for row in rows if row["device"] == device and row["mode"] == mode]


def frontier_of(rows):
    """The rows of one pane that no other beats, by falling ranges a second."""
    return pareto_frontier(rows, lambda row: row["ranges_per_second"],
                           lambda row: row["rate_percent"])


def pane_table(rows):
    """Markdown lines: one pane, what lies on its frontier in bold."""
    best = {key_of(row) for row in frontier_of(rows)}
    cells = []
    for row in rows:
        bold = "**" if key_of(row) in best else ""
        cells.append([
            f"{bold}{row['codec']}{bold}", format_size(row["block_size_bytes"]),
            format_size(row["dictionary_size_bytes"]),
            f"{bold}{format_number(row['rate_percent'], 2)}{bold}",
            f"{bold}{format_number(row['ranges_per_second'])}{bold}",
            format_number(row["mb_per_second"], 1), format_number(row["p50_ms"], 2),
            format_number(row["p99_ms"], 2), format_number(row["cache_hits_percent"], 1)])
    return markdown(["codec", "block", "dictionary", "rate %", "ranges/s", "MB/s", "p50 ms",
                     "p99 ms", "cache hits %"], cells)


def estimate_seconds(cells, seconds_per_cell, archives, text_bytes, bytes_per_second=20e6):
    """How long a run takes: cells of so many seconds, each with a server that
    starts and stops, and archives to be built of a text."""
    return cells * (seconds_per_cell + 1.5) + archives * (1 + text_bytes / bytes_per_second)
