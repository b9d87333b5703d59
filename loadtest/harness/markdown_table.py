# SPDX-License-Identifier: Apache-2.0
"""Tables and numbers in the format of the benchmarks."""


def format_size(size_bytes):
    """Formats 65536 as "64 KiB"; None as "-"."""
    if not size_bytes:
        return "-"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << shift and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift} {unit}"
    return f"{size_bytes} B"


def format_number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def markdown(header, rows):
    """Returns the lines of a table; cells are strings."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
