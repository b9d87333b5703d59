# SPDX-License-Identifier: Apache-2.0
"""What the codec benchmark computes from what it measured: rates, the Pareto
frontier, the CSV file and the Markdown table.

A row is a dict with the keys COLUMNS; a value that was not measured is None.
"""
import csv
import os
import pathlib

# Sizes are those of the whole text, scaled where only a sample was encoded.
COLUMNS = [
    "kind",                     # block, archive or store: see codec_bench.py
    "codec",                    # name and level, or the peer's name
    "block_size_bytes",
    "dictionary_method",        # empty without dictionary
    "dictionary_size_bytes",    # as asked for
    "text_bytes",
    "encoded_bytes",            # of the text; less than text_bytes: a sample
    "payload_bytes",
    "dictionary_xz_bytes",      # under xz -9e, as archives keep it
    "dictionary_zlib_bytes",    # under zlib -9, as the paper's programs keep it
    "index_bytes",
    "rate_percent",             # all of the above (xz) or of all files on disk
    "rate_zlib_percent",
    "choose_cpu_seconds",       # of the dictionary's text
    "prepare_cpu_seconds",      # index of the dictionary
    "encode_mb_per_second",
    "decode_mb_per_second",
    "ranges_per_second",
    "documents_per_second",
    "encoder_bytes",
    "decoder_bytes",
    "peak_memory_bytes",
]
# What a row is known by: it is not measured again.
KEY = ("kind", "codec", "block_size_bytes", "dictionary_method", "dictionary_size_bytes",
       "text_bytes")
TEXT_COLUMNS = {"kind", "codec", "dictionary_method"}


def key_of(row):
    return tuple(row.get(column) or None for column in KEY)


def rate_percent(text_bytes, *stored_bytes):
    """What is stored, in percent of the text; None leaves a part out."""
    if text_bytes <= 0:
        raise ValueError("an empty text has no rate")
    return 100 * sum(part or 0 for part in stored_bytes) / text_bytes


def complete(row):
    """The row with its rates and all columns."""
    row = {column: row.get(column) for column in COLUMNS}
    if row["payload_bytes"] is not None:
        parts = (row["payload_bytes"], row["index_bytes"])
        row["rate_percent"] = round(
            rate_percent(row["text_bytes"], *parts, row["dictionary_xz_bytes"]), 4)
        row["rate_zlib_percent"] = round(
            rate_percent(row["text_bytes"], *parts, row["dictionary_zlib_bytes"]), 4)
    return row


def pareto_frontier(points, x, y):
    """The points that no other one beats: none has at least as much of x(point)
    and at most as much of y(point), and differs. By falling x; of equal points
    the first."""
    frontier = []
    for point in sorted(points, key=lambda p: (-x(p), y(p))):
        if not frontier or y(point) < y(frontier[-1]):
            frontier.append(point)
    return frontier


def number(text):
    if text == "":
        return None
    value = float(text)
    return int(value) if value.is_integer() and "." not in text else value


def read_csv(path, columns=COLUMNS, text_columns=TEXT_COLUMNS):
    """The rows of a file that write_csv() wrote; none if there is no file."""
    if not pathlib.Path(path).exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if list(row) != list(columns):
            raise ValueError(f"{path}: has other columns; move it away")
        for column in columns:
            row[column] = (row[column] or None) if column in text_columns else number(row[column])
    return rows


def write_csv(path, rows, columns=COLUMNS):
    """Whole or not at all: a run that is stopped goes on from it."""
    partial = f"{path}.partial"
    with open(partial, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(partial, path)


def format_size(size_bytes):
    """65536 as "64 KiB"; None as "-"."""
    if not size_bytes:
        return "-"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << shift and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift} {unit}"
    return f"{size_bytes} B"


def format_number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def format_rate(row):
    """With a tilde where only a sample was encoded."""
    sampled = (row["encoded_bytes"] or row["text_bytes"]) < row["text_bytes"]
    return ("~" if sampled else "") + format_number(row["rate_percent"], 2)


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def format_speed(value):
    return "-" if value is None else format_number(value, 1 if value < 100 else 0)


def block_table(rows):
    """Markdown lines: every codec, block size and dictionary; the Pareto frontier
    of rate and random access in bold."""
    rows = [row for row in rows if row["kind"] == "block"]
    frontier = {key_of(row) for row in block_frontier(rows)}
    header = ["codec", "block", "dictionary", "rate %", "(zlib dictionary)", "build MB/s",
              "decode MB/s", "ranges/s", "peak memory MiB"]
    cells = []
    for row in rows:
        dictionary = format_size(row["dictionary_size_bytes"])
        if row["dictionary_method"]:
            dictionary += f" {row['dictionary_method']}"
        bold = "**" if key_of(row) in frontier else ""
        cells.append([
            f"{bold}{row['codec']}{bold}", format_size(row["block_size_bytes"]), dictionary,
            f"{bold}{format_rate(row)}{bold}",
            format_number(row["rate_zlib_percent"], 2) if row["dictionary_zlib_bytes"] else "-",
            format_speed(row["encode_mb_per_second"]),
            format_speed(row["decode_mb_per_second"]),
            f"{bold}{format_number(row['ranges_per_second'])}{bold}",
            format_number((row["peak_memory_bytes"] or 0) / (1 << 20))])
    return markdown(header, cells)


def block_frontier(rows):
    measured = [row for row in rows if row["kind"] == "block" and row["ranges_per_second"]]
    return pareto_frontier(measured, lambda row: row["ranges_per_second"],
                           lambda row: row["rate_percent"])


def archive_table(rows):
    """Markdown lines: what `quired build` wrote, all files."""
    return markdown(
        ["codec", "block", "dictionary", "on disk, bytes", "on disk, % of the text",
         "build MB/s of CPU", "peak memory MiB"],
        [[row["codec"], format_size(row["block_size_bytes"]),
          format_size(row["dictionary_size_bytes"]), format_number(row["payload_bytes"]),
          format_number(row["rate_percent"], 3), format_speed(row["encode_mb_per_second"]),
          format_number((row["peak_memory_bytes"] or 0) / (1 << 20))]
         for row in rows if row["kind"] == "archive"])


def store_table(rows):
    """Markdown lines: the same documents in each store."""
    return markdown(
        ["store", "block", "dictionary", "text, bytes", "rate %", "build MB/s of CPU",
         "documents/s of CPU", "peak memory MiB"],
        [[row["codec"], format_size(row["block_size_bytes"]),
          format_size(row["dictionary_size_bytes"]), format_number(row["text_bytes"]),
          format_rate(row), format_speed(row["encode_mb_per_second"]),
          format_number(row["documents_per_second"]),
          format_number((row["peak_memory_bytes"] or 0) / (1 << 20))]
         for row in rows if row["kind"] == "store"])
