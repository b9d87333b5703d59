#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of "Access Time Tradeoffs in Archive Compression" next to the same
measurements here.

    loadtest/papers/paper_rlz.py /data/webdocs256.raw

Rates, sequential reads and random ranges of 16 KiB are compared with the authors'
programs on the same text (uniform dictionary of 16 MiB, one thread, memory). Table 3 is of
64 GiB of GOV2, so dictionaries are compared by their share of the text. BATCH (400 ranges
at once) and RANDOM (one in flight) run on the modelled drive of the paper, through
`quired serve`. Sizes include the dictionary and the block index under zlib -9.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import AS_IT_IS, build_archive, find_programs, make_parser
from disk_runs import MODELLED_DISK, Loader, cold_server
from live_server import make_documents, write_corpus
from markdown_table import markdown

BLOCK_SIZES = "16KiB,64KiB,256KiB"
# Codec -> its name in the paper, and the authors' programs' figures for webdocs256, by
# block size: percent of the text, sequential MB/s, ranges per second.
AUTHORS = {
    "rlz-uv": ("RLZ-UV", ((20.57, 1546, 47798), (20.54, 2051, 23007), (20.54, 2016, 5848))),
    "rlz-pv": ("RLZ-PV", ((16.69, 1802, 52279), (16.66, 1362, 20237), (16.66, 1626, 5995))),
    "rlz-zz:9": ("RLZ-ZZ", ((14.76, 517, 15290), (13.72, 690, 7352), (13.04, 713, 2478))),
    "rlz-zzz:9": ("RLZ-ZZZ", ((13.07, 622, 17855), (12.02, 713, 8357), (11.34, 921, 3084)))}
# Table 3, blocks of 64 KiB: text / dictionary -> percent of RLZ-ZZ and RLZ-ZZZ.
TABLE_3 = {4096: (21.58, 20.99), 1024: (18.89, 18.54), 256: (16.57, 16.39)}
# Figure 2, hard disk: units of 16 KiB per second.
DISK = {"batch": "100 to 200", "random": "about 100"}
DISK_CODECS = ("copy", "rlz-zz", "rlz")


def parse_arguments():
    parser = make_parser(__doc__, "codec_figures", "quired", "quire-loadtest")
    parser.add_argument("text", type=pathlib.Path, nargs="?", metavar="TEXT")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each timed round")
    parser.add_argument("--smoke", action="store_true", help="a small generated text, briefly")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.text and not arguments.smoke:
        parser.error("TEXT is required, unless --smoke is given")
    return arguments


def codec_figures(arguments, codecs, dictionary_size, block_sizes):
    """Returns the figures of codec_figures, by codec and block size."""
    program, = find_programs(arguments.build, "codec_figures")
    printed = subprocess.run(
        [program, arguments.text, "--codecs", ",".join(codecs), "--block-sizes", block_sizes,
         "--dictionary-method", "uniform", "--dictionary-size", dictionary_size, "--seconds",
         str(arguments.seconds)], check=True, text=True, stdout=subprocess.PIPE).stdout
    rows = list(map(json.loads, printed.splitlines()))
    for row in rows:
        row["percent"] = 100 / row["text_bytes"] * sum(
            row[f"{part}_bytes"] for part in ("payload", "index", "dictionary_zlib"))
    count = len(rows) // len(codecs)
    return {codec: rows[i * count:(i + 1) * count] for i, codec in enumerate(codecs)}


def joined(values, form):
    return " / ".join(format(value, form) for value in values)


def memory_rows(arguments):
    found = codec_figures(arguments, AUTHORS, "64KiB" if arguments.smoke else "16MiB", BLOCK_SIZES)
    rows = []
    for codec, (name, authors) in AUTHORS.items():
        for index, (what, column, form) in enumerate((
                ("% of the text", "percent", ".2f"),
                ("sequential MB/s", "decode_mb_per_second", ",.0f"),
                ("ranges/s", "ranges_per_second", ",.0f"))):
            rows.append([f"{name}, 16 / 64 / 256 KiB blocks, {what}",
                         joined((each[index] for each in authors), form),
                         joined((each[column] for each in found[codec]), form)])
    return rows


def share_rows(arguments):
    rows = []
    for share, paper in TABLE_3.items():
        size = max(4096, arguments.text.stat().st_size // share)
        found = codec_figures(arguments, ("rlz-zz:9", "rlz-zzz:9"), f"{size}B", "64KiB")
        rows.append([f"RLZ-ZZ / RLZ-ZZZ, dictionary of 1/{share} of the text, 64 KiB blocks, %",
                     joined(paper, ".2f"),
                     joined((each["percent"] for each, in found.values()), ".2f")])
    return rows


def disk_rows(arguments, directory):
    quired, = find_programs(arguments.build, "quired")
    loader = Loader(arguments.build)
    rates = {mode: [] for mode in DISK}
    for codec in DISK_CODECS:
        archive = directory / f"{codec}.quire"
        build_archive(quired, archive, [arguments.text], ["--codec", codec, *AS_IT_IS, *(
            ["--dictionary-size", "64KiB"] if arguments.smoke and codec != "copy" else [])])
        for mode, found in rates.items():
            with cold_server(quired, "rlz", archive, command=MODELLED_DISK) as server:
                run = loader.run(server, "rlz", arguments.text, mode,
                                 0.2 if arguments.smoke else 5,
                                 batch_size=5 if arguments.smoke else 400)
            found.append(run["requests"] / run["seconds"])
    return [[f"{mode.upper()} on a hard disk, {' / '.join(DISK_CODECS)}, ranges/s", paper,
             joined(rates[mode], ",.0f")] for mode, paper in DISK.items()]


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        directory = pathlib.Path(scratch)
        if arguments.smoke:
            write_corpus(make_documents(20, seed=3), directory / "smoke")
            arguments.text, arguments.seconds = directory / "smoke.raw", 0.001
        rows = memory_rows(arguments) + share_rows(arguments) + disk_rows(arguments, directory)
    print_figures(arguments, rows, markdown(["what", "paper", "here"], rows))


if __name__ == "__main__":
    main()
