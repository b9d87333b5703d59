#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Short ranges of large blocks by each way of decoding them, and what partitions
cost: the experiments of "Random Read Speedup in Compression Enabled Storage Systems".

    loadtest/range_bench.py /data/webdocs.raw /data/columns --out ranges.svg --json ranges.json

Takes pieces of 256,000 bytes from all over the files (of a directory, all its files),
so that they differ in compressibility as much as these texts allow. Of each
piece 24 ranges of 4 to 32 KiB and 60 of 8 B to 4 KiB are decoded at the paper's
offsets, and others at random ones, by bin/range_figures. Prints sums and aims.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import zlib

import range_plot
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from codec_table import format_number, format_size, markdown

PIECE_SIZE = 256_000
# So many candidates for each piece that is kept.
CANDIDATES = 8
KIB = 1024
LONG_SIZES = [4 * KIB << i for i in range(4)]
SHORT_SIZES = [8 << i for i in range(10)]
OFFSETS = [offset * KIB for offset in (32, 64, 100, 140, 180, 215)]
PARTITION_SIZES = [8 * KIB << i for i in range(6)]
LEVELS = (1, 6)
# Way -> (what it is, what it is compared with).
WAYS = {
    "start": ("zlib from the block's start", "start"),
    "partition32": ("`zlib-pex`, partitions of 32 KiB", "start"),
    "partition8": ("`zlib-pex`, partitions of 8 KiB", "start"),
    "phrases_start": ("zlib's parse without Huffman codes, from the start", "start"),
    "phrases_recursive": ("the same by recursion", "start"),
    "lz4_start": ("LZ4 from the block's start", "lz4_start"),
    "lz4_recursive": ("the same by recursion", "lz4_start"),
}


def files_of(texts):
    """Those of each text that have a piece: of a directory in order of name."""
    found = []
    for text in texts:
        if not text.exists():
            sys.exit(f"range_bench.py: {text}: no such file or directory")
        files = [path for path in (sorted(text.iterdir()) if text.is_dir() else [text])
                 if path.is_file() and path.stat().st_size >= PIECE_SIZE]
        if not files:
            sys.exit(f"range_bench.py: {text}: no file of {PIECE_SIZE:,} bytes or more")
        found.append(files)
    return found


def choose_pieces(texts, count):
    """Pieces in order of compressibility, the most compressible first. Each text has as
    many candidates, evenly in its files; those of evenly spaced rank are kept."""
    candidates = []
    for path, each in ((path, -(-CANDIDATES * count // (len(texts) * len(files))))
                       for files in texts for path in files):
        last = path.stat().st_size - PIECE_SIZE
        offsets = sorted({last * i // max(1, each - 1) for i in range(each)})
        with path.open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                piece = file.read(PIECE_SIZE)
                candidates.append((len(zlib.compress(piece, 6)), path.name, offset, piece))
    if len(candidates) < count:
        sys.exit(f"range_bench.py: the files have {len(candidates)} pieces of {PIECE_SIZE:,} "
                 f"bytes, fewer than --pieces {count}; give more text or fewer pieces")
    candidates.sort()
    return [candidates[i * (len(candidates) - 1) // max(1, count - 1)] for i in range(count)]


def measure(program, pieces, round_us):
    """The figures: where each piece is from, its sizes, and its sums of the long ranges
    at the paper's offsets; and each range's mean over the pieces."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path = pathlib.Path(directory) / "pieces"
        path.write_bytes(b"".join(piece for *_, piece in pieces))
        printed = json.loads(subprocess.run([program, path, str(PIECE_SIZE), str(round_us)],
                                            check=True, stdout=subprocess.PIPE).stdout)
    found = {"pieces": [], "ranges": []}
    for (_, name, offset, _), piece in zip(pieces, printed, strict=True):
        found["pieces"].append({
            "file": name, "offset": offset, "stored": piece["stored"], "whole": piece["whole"],
            "sums": {way: total(piece, way, LONG_SIZES) for way in WAYS}})
    for same in zip(*(piece["ranges"] for piece in printed), strict=True):
        found["ranges"].append({
            "offset": same[0]["offset"], "size": same[0]["size"],
            "us": {way: sum(line["us"][way] for line in same) / len(same) for way in WAYS}})
    return found


def total(figures, way, sizes, offsets=OFFSETS):
    """Microseconds for all ranges of these sizes at these offsets, of which None stands
    for random ones."""
    return sum(line["us"][way] for line in figures["ranges"]
               if line["size"] in sizes and line["offset"] in offsets)


def whole(figures, codec):
    """Mean time of decoding all of a piece."""
    return statistics.mean(piece["whole"][codec] for piece in figures["pieces"])


def loss(piece, level, partition_size):
    """What partitions add to the stored size, in percent of the text."""
    stored = piece["stored"]
    return 100 * (stored[f"zlib-pex:{level}/{partition_size}"] - stored[f"zlib:{level}"]) / PIECE_SIZE


def mean_loss(figures, level, partition_size):
    return statistics.mean(loss(piece, level, partition_size) for piece in figures["pieces"])


def ratio(figures, above, below, sizes, offsets=OFFSETS):
    """How many times as fast `below` is."""
    return total(figures, above, sizes, offsets) / total(figures, below, sizes, offsets)


def against_whole(figures, way, sizes):
    """How many times as long it takes to decode the whole block for each range."""
    return whole(figures, "zlib") * len(sizes) * len(OFFSETS) / total(figures, way, sizes)


def recursion_ratio(figures, size):
    """Recursion compared with the better of LZ4 and zlib from the block's start, at
    random offsets."""
    at = ([size], [None])
    return (min(total(figures, "lz4_start", *at), total(figures, "start", *at))
            / min(total(figures, way, *at) for way in ("lz4_recursive", "phrases_recursive")))


def rule_excess(figures, ways=()):
    """How long the server's rule takes (always the partitions that a range touches), as
    a multiple of the best of decoding the whole block, of that, and of other `ways`: at
    worst, over all ranges at the paper's offsets."""
    return max(line["us"]["partition32"] / min(whole(figures, "partition32"),
                                               *(line["us"][way] for way in ("partition32", *ways)))
               for line in figures["ranges"] if line["offset"] is not None)


def crossover(figures, offset):
    """The longest range, of those measured, that recursion still decodes faster than
    LZ4 from the block's start; 0 if there is none."""
    wins = [size for size in SHORT_SIZES + LONG_SIZES[1:]
            if total(figures, "lz4_recursive", [size], [offset])
            < total(figures, "lz4_start", [size], [offset])]
    return max(wins, default=0)


def way_rows(figures):
    rows = []
    for way, (what, against) in WAYS.items():
        cells = [what]
        for sizes in (LONG_SIZES, SHORT_SIZES):
            for offsets in (OFFSETS, [None]):
                times = total(figures, way, sizes, offsets)
                cells.append(f"{times:,.0f}" + ("" if way == against else
                             f" ({total(figures, against, sizes, offsets) / times:.1f})"))
        rows.append(cells)
    return rows


WAY_HEADER = ["way", "24 ranges of 4 to 32 KiB, µs", "4 at random offsets",
              "60 ranges of 8 B to 4 KiB, µs", "10 at random offsets"]


def offset_rows(figures):
    """Sums of the ranges of 4 to 32 KiB at each offset."""
    return [[format_size(offset), *(f"{total(figures, way, LONG_SIZES, [offset]):,.0f}"
                                    for way in WAYS),
             format_size(crossover(figures, offset)) if crossover(figures, offset) else "none"]
            for offset in OFFSETS]


OFFSET_HEADER = ["offset", *WAYS, "longest range faster by recursion (LZ4)"]


def loss_rows(figures):
    return [[f"level {level}", *(f"{mean_loss(figures, level, size):.2f}"
                                 for size in PARTITION_SIZES)] for level in LEVELS]


LOSS_HEADER = ["points lost", *(format_size(size) for size in PARTITION_SIZES)]


def tables(figures):
    """Markdown lines."""
    stored = [100 * piece["stored"]["zlib:6"] / PIECE_SIZE for piece in figures["pieces"]]
    return [f"{len(stored)} pieces of {PIECE_SIZE:,} bytes, which zlib stores in "
            f"{min(stored):.0f} to {max(stored):.0f} % of their size. Means over the pieces; in "
            "brackets: times as fast as decoding from the start.", "",
            *markdown(WAY_HEADER, way_rows(figures)), "",
            *markdown(OFFSET_HEADER, offset_rows(figures)), "",
            *markdown(LOSS_HEADER, loss_rows(figures)), "",
            f"- whole blocks, µs: zlib {whole(figures, 'zlib'):,.0f}, `zlib-pex` "
            f"{whole(figures, 'partition32'):,.0f}, with 8 KiB {whole(figures, 'partition8'):,.0f}, "
            f"LZ4 {whole(figures, 'lz4'):,.0f}",
            *(f"- recursion of {format_size(size)}: {format_number(recursion_ratio(figures, size), 2)} "
              "times the better of LZ4 and zlib from the start" for size in (8, 64, 256, 1024)),
            f"- partitions always, compared with the better of them and whole blocks: at worst "
            f"{rule_excess(figures):.2f} times as long; recursion included: "
            f"{rule_excess(figures, ['phrases_recursive']):.1f}"]


def draw(figures):
    """The SVG of all figures."""
    pieces = figures["pieces"]
    pieces_axis = list(range(1, len(pieces) + 1))

    def by_piece(way):
        return list(zip(pieces_axis, (piece["sums"][way] for piece in pieces),
                        strict=True))

    def by_size(way):
        return [(size, total(figures, way, [size], [None])) for size in SHORT_SIZES + LONG_SIZES[1:]]

    def by_offset(way):
        return [(offset / KIB, total(figures, way, LONG_SIZES, [offset])) for offset in OFFSETS]

    names = {"start": "zlib, start", "partition32": "partitions of 32 KiB",
             "partition8": "partitions of 8 KiB", "phrases_start": "no Huffman, start",
             "phrases_recursive": "no Huffman, recursion", "lz4_start": "LZ4, start",
             "lz4_recursive": "LZ4, recursion"}
    losses = [range_plot.Pane(
        f"Points lost by partitions, level {level}", "piece, the most compressible first",
        [(format_size(size), list(zip(pieces_axis, (loss(piece, level, size) for piece in pieces),
                                      strict=True)))
         for size in PARTITION_SIZES], is_logarithmic=(False, False)) for level in LEVELS]
    return range_plot.render("Ranges of blocks of 256,000 bytes", [
        range_plot.Pane("24 ranges of 4 to 32 KiB, µs, by piece",
                        "piece, the most compressible first",
                        [(names[way], by_piece(way)) for way in WAYS], (False, True)),
        range_plot.Pane("4 ranges of 4 to 32 KiB, µs, by offset", "offset, KiB",
                        [(names[way], by_offset(way)) for way in WAYS], (False, True)),
        range_plot.Pane("One range at random offsets, µs, by size", "bytes",
                        [(names[way], by_size(way)) for way in WAYS], (True, True)), *losses])


def parse_arguments():
    parser = make_parser(__doc__, "range_figures")
    parser.add_argument("texts", nargs="+", type=pathlib.Path, metavar="TEXT",
                        help="a file, or a directory of files")
    parser.add_argument("--pieces", type=int, default=34, metavar="N",
                        help="how many, at least 1 (default: %(default)s)")
    parser.add_argument("--round-us", type=float, default=50, metavar="TIME",
                        help="how long each range is repeated, five times (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="the drawing, an SVG")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.pieces < 1:
        parser.error(f"--pieces must be at least 1, got {arguments.pieces}")
    if not 1 <= arguments.round_us <= 1e6:
        parser.error(f"--round-us must be 1 to 1,000,000, got {arguments.round_us:g}")
    return arguments


def main():
    arguments = parse_arguments()
    [program] = find_programs(arguments.build, "range_figures")
    pieces = choose_pieces(files_of(arguments.texts), arguments.pieces)
    figures = measure(program, pieces, arguments.round_us)
    if arguments.out:
        arguments.out.write_text(draw(figures), encoding="utf-8")
    print_figures(arguments, figures, tables(figures))


if __name__ == "__main__":
    main()
