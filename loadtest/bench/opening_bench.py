#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long a server takes from its start until it serves archives with
dictionaries of 16 MiB: one archive, and 200 copies of it, by objective.

    loadtest/bench/opening_bench.py --build build/release --text FILE

Without --text the archives are of generated documents, whose dictionaries compress
better than those of real text. All files are in the page cache. The memory of the server is
that of all dictionaries: 3.5 GiB for 200.
"""
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, machine_load, make_parser
from live_server import LiveServer, make_documents, write_corpus
from markdown_table import markdown

# A plain build's objective; and that for archives that open often.
OBJECTIVES = ("balanced", "speed")


def parse_arguments():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--text", help="file whose first 64 MiB are archived")
    parser.add_argument("--archives", type=int, default=200, help="copies (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dictionary-size", default="16MiB")
    parser.add_argument("--smoke", action="store_true", help="a few small archives")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.archives, arguments.rounds, arguments.dictionary_size = 4, 1, "256KiB"
    return arguments


def write_text(arguments, stem):
    """Writes a text of more than the dictionary's size; returns its path."""
    if not arguments.text:
        count = 100 if arguments.smoke else 3_000
        write_corpus(make_documents(count, seed=11), stem)
        return f"{stem}.raw"
    with open(arguments.text, "rb") as source, open(f"{stem}.raw", "wb") as target:
        target.write(source.read(64 << 20))
    return f"{stem}.raw"


def start_seconds(quired, directory):
    """Returns the seconds from the start of a server until all its archives are open."""
    begun = time.monotonic()
    with LiveServer(str(quired), [], "--archives-dir", directory) as server:
        while True:
            try:
                server.is_ready()
                return time.monotonic() - begun
            except urllib.error.HTTPError:
                time.sleep(0.001)


def measure(arguments, directory):
    """Returns the seconds of each round, by objective and number of archives."""
    quired, = find_programs(arguments.build, "quired")
    text = write_text(arguments, directory / "text")
    found = {}
    for objective in OBJECTIVES:
        one, many = directory / f"{objective}-one", directory / f"{objective}-many"
        one.mkdir()
        many.mkdir()
        build_archive(quired, one / "docs.quire", [text],
                      ["--objective", objective, "--codec", "rlz", "--dictionary-size",
                       arguments.dictionary_size])
        for number in range(arguments.archives):
            shutil.copytree(one / "docs.quire", many / f"docs{number:03}.quire")
        for count, archives in ((1, one), (arguments.archives, many)):
            start_seconds(quired, archives)
            found[f"{objective}, {count}"] = [start_seconds(quired, archives)
                                              for _ in range(arguments.rounds)]
        shutil.rmtree(many)
    return found


def table(arguments, found):
    """Returns lines of text and Markdown."""
    rows = []
    for case, seconds in found.items():
        objective, count = case.split(", ")
        archives = "an archive" if count == "1" else f"{count} archives"
        rows.append([f"start of a server until it serves {archives}, `--objective {objective}`, "
                     f"dictionaries of {arguments.dictionary_size}",
                     f"{statistics.median(seconds):.3f} s"])
    return [f"{machine_load()}; medians of {arguments.rounds} rounds", "",
            *markdown(["what", "figure"], rows)]


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as directory:
        found = measure(arguments, pathlib.Path(directory))
    print_figures(arguments, found, table(arguments, found))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"opening_bench.py: {error}")
