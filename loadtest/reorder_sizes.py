#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that `quired build --reorder auto` makes no archive larger than `off` does.

    loadtest/reorder_sizes.py releases/ manuals/ /usr/include /usr/share/doc /usr/lib/python3

Each INPUT is a collection: a directory, or anything else that build takes. Builds it
both ways with each codec and dictionary, and prints the sizes. Fails if one of auto is
more than 0.1 % larger than off. Takes minutes for each 100 MB, so no test runs it; the
test order_choice_test has the same check for small texts.
"""
import pathlib
import subprocess
import sys
import tempfile

from bench_setup import find_programs, make_parser

LARGER_MAX = 1.001


def parse_arguments():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("inputs", metavar="INPUT", nargs="+")
    parser.add_argument("--codecs", default="rlz,rlz:max")
    parser.add_argument("--dictionary-sizes", default="4MiB,16MiB,64MiB")
    parser.add_argument("--inflate", default="off", choices=("off", "auto"))
    return parser.parse_args()


def archive_size(quired, path, source, *options):
    subprocess.run([quired, "build", "--quiet", "--force", "-o", path, *options, source],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return sum(file.stat().st_size for file in path.iterdir())


def main():
    arguments = parse_arguments()
    (quired,) = find_programs(arguments.build, "quired")
    larger_count = 0
    print("input | codec | dictionary | off | auto | change")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path = pathlib.Path(directory) / "x.quire"
        for source in arguments.inputs:
            for codec in arguments.codecs.split(","):
                for size in arguments.dictionary_sizes.split(","):
                    off, auto = (archive_size(
                        quired, path, source, "--codec", codec, "--dictionary-size",
                        size, "--inflate", arguments.inflate, "--reorder", mode)
                        for mode in ("off", "auto"))
                    larger_count += auto > off * LARGER_MAX
                    print(f"{source} | {codec} | {size} | {off} | {auto} | "
                          f"{auto / off - 1:+.3%}", flush=True)
    if larger_count:
        sys.exit(f"{larger_count} archives are more than 0.1 % larger with auto")


if __name__ == "__main__":
    main()
