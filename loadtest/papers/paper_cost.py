#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tables 1 and 2 of "Data Compression for Climate Data" next to the same
measurements here: speed and ratio of codecs while all cores do the same, and the throughput of a link
below which compressing its data pays (equation 3, of which Table 1 has examples).

    loadtest/papers/paper_cost.py /data/webdocs64.raw

The paper's text is 300 GiB of scientific files on 24 cores of a node; give any text.
Blocks are of 64 KiB; speeds are in MB/s of one core's CPU time.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from live_server import make_documents, write_corpus
from markdown_table import markdown

# Table 2: codec here -> its name there, compression and decompression MB/s, ratio.
TABLE_2 = {"lz4:-1": ("lz4fast", 2945, 6460, 1.825), "lz4": ("lz4", 1796, 5178, 1.923),
           "lz4:9": ("lz4hc", 258, 4333, 2.0), "xz": ("xz", 26, 97, 2.632),
           "zlib": ("zlib", 95, 610, 2.326), "zstd": ("zstd", 658, 2019, 2.326)}


def parse_arguments():
    parser = make_parser(__doc__, "codec_figures")
    parser.add_argument("text", type=pathlib.Path, nargs="?", metavar="TEXT")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each timed round")
    parser.add_argument("--smoke", action="store_true", help="a small generated text, briefly")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.text and not arguments.smoke:
        parser.error("TEXT is required, unless --smoke is given")
    return arguments


def thresholds(compress, decompress, ratio):
    """Returns the throughputs of the link below which compression pays: (sender, link and
    receiver in turn; all at once)."""
    saved = 1 - 1 / ratio
    return compress * decompress / (compress + decompress) * saved, min(compress, decompress) * saved


def measure(arguments):
    program, = find_programs(arguments.build, "codec_figures")
    printed = subprocess.run(
        [program, arguments.text, "--codecs", ",".join(TABLE_2), "--threads",
         str(os.cpu_count()), "--seconds", str(arguments.seconds)],
        check=True, text=True, stdout=subprocess.PIPE).stdout
    return {codec: (row["encode_mb_per_second"], row["decode_mb_per_second"],
                    row["text_bytes"] / row["payload_bytes"])
            for codec, row in zip(TABLE_2, map(json.loads, printed.splitlines()), strict=True)}


def rows_of(found):
    rows = []
    for codec, (name, *paper) in TABLE_2.items():
        rows.append([f"{name}: compress / decompress MB/s / ratio",
                     *("{:,.0f} / {:,.0f} / {:.3f}".format(*each) for each in (paper, found[codec]))])
    for codec, (name, *paper) in TABLE_2.items():
        rows.append([f"{name}: pays on links below, MB/s per core, in turn / pipelined",
                     *("{:,.0f} / {:,.0f}".format(*pair)
                       for pair in (thresholds(*paper), thresholds(*found[codec])))])
    return rows


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as directory:
        if arguments.smoke:
            write_corpus(make_documents(10, seed=3), f"{directory}/smoke")
            arguments.text, arguments.seconds = pathlib.Path(directory, "smoke.raw"), 0.001
        rows = rows_of(measure(arguments))
    print_figures(arguments, rows, markdown(["what", "paper", "here"], rows))


if __name__ == "__main__":
    main()
