#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes of archives on disk: all files that `quired build` writes, in percent of the
text. Exact, so other load on the machine does not matter.

    loadtest/archive_sizes.py --archive /data/webdocs256.raw,rlz:max,64KiB,16MiB

Each --archive is TEXT,CODEC,BLOCK_SIZE,DICTIONARY_SIZE, or these and further options of
the build: "/data/webdocs.tar,rlz,64KiB,64MiB,--inflate auto". TEXT is one file, or a tar.
"""
import argparse
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from codec_runs import measure_archive
from codec_table import archive_table, complete
from live_server import parse_size


def parse_archive(text):
    try:
        path, codec, block_size, dictionary_size, *options = text.split(",", 4)
        return (pathlib.Path(path), codec, parse_size(block_size), parse_size(dictionary_size),
                " ".join(options))
    except (ValueError, KeyError) as error:
        raise argparse.ArgumentTypeError(
            f'expected TEXT,CODEC,BLOCK_SIZE,DICTIONARY_SIZE[,OPTIONS], got "{text}"') from error


def text_size(path):
    """Of what is built of the file: with a tar, that of its documents."""
    if path.suffix != ".tar":
        return path.stat().st_size
    with tarfile.open(path) as archive:
        return sum(member.size for member in archive if member.isfile())


def parse_arguments():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--archive", type=parse_archive, action="append", required=True)
    parser.add_argument("--out", type=pathlib.Path, help="scratch directory on a disk with "
                        "space for one archive (default: a temporary directory)")
    add_json_option(parser)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    quired, = find_programs(arguments.build, "quired")
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.out) as scratch:
        for path, codec, block_size, dictionary_size, options in arguments.archive:
            row = complete(measure_archive(quired, path, text_size(path), codec, block_size,
                                           "coverage", dictionary_size, pathlib.Path(scratch),
                                           options.split()))
            rows.append({"text": path.stem, "options": options, **row})
            print(f"{path.stem} {codec} {options}: {row['rate_percent']} %", file=sys.stderr,
                  flush=True)
    print_figures(arguments, rows, archive_table(rows))


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, RuntimeError, OSError) as error:
        sys.exit(f"archive_sizes.py: {error}")
