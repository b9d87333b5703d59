#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures short ranges of large uncached blocks, in codecs with and without partitions:
answers per second of the server's CPU time.

    loadtest/bench/uncached_bench.py /data/webdocs.raw

Builds an archive of the text with each codec, and serves each with too little memory to
cache much of it. In each round quire-loadtest reads random ranges from each of them in
turn. Ratios are of neighbours in one round, so that other load on the machine affects
both.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import (AS_IT_IS, build_archive, find_programs, machine_load,
                         make_parser)
from markdown_table import format_size, markdown
from live_server import LiveServer, make_documents, parse_size, write_corpus

# Codec and size of partitions; each is compared with the codec without.
PAIRS = (("zlib", "32KiB"), ("rlz", "32KiB"), ("rlz", "16KiB"))


def name_of(codec, partition_size):
    return f"{codec}-{partition_size}"


def measure(arguments, programs, archive, memory):
    """Returns the server's CPU time per answer, in microseconds."""
    quired, loadtest = programs
    with LiveServer(quired, [f"bench={archive}"], "--memory", str(memory)) as server:
        def read(requests):
            before = server.cpu_seconds()
            run = subprocess.run(
                [loadtest, "bench", "--server", server.address, "--mode", "random", "--in-flight",
                 "32", "--range-size", arguments.range_size, "--requests", str(requests),
                 "--json"], check=True, capture_output=True, text=True)
            assert json.loads(run.stdout)["right"] == requests, run.stdout
            return 1e6 * (server.cpu_seconds() - before) / requests
        # Until the cache is full.
        read(arguments.requests // 4)
        return read(arguments.requests)


def archive_memory(quired, archive):
    """Returns the memory for serving the archive without a cache."""
    printed = subprocess.run([quired, "inspect", "--json", archive], check=True,
                             capture_output=True, text=True)
    return json.loads(printed.stdout)["memory"]["total_bytes"]


def run_rounds(arguments, directory):
    programs = find_programs(arguments.build, "quired", "quire-loadtest")
    archives, sizes = {}, {}
    for name, codec, *partitions in [*((name_of(*pair), pair[0], "--partition-size", pair[1])
                                       for pair in PAIRS),
                                     *((codec, codec) for codec in dict.fromkeys(
                                         codec for codec, _ in PAIRS))]:
        archives[name] = directory / f"{name}.quire"
        dictionary = (["--dictionary-size", arguments.dictionary_size]
                      if codec == "rlz" else [])
        build_archive(programs[0], archives[name], [arguments.text],
                      ["--codec", codec, "--block-size", arguments.block_size, *partitions,
                       *dictionary, *AS_IT_IS])
        sizes[name] = sum(file.stat().st_size for file in archives[name].iterdir())
    rounds = []
    for _ in range(arguments.rounds):
        figures = {}
        for name in archives:
            memory = parse_size(arguments.memory) + archive_memory(programs[0], archives[name])
            figures[name] = measure(arguments, programs, archives[name], memory)
        rounds.append(figures)
    return {"block_size": parse_size(arguments.block_size),
            "range_size": parse_size(arguments.range_size), "stored_bytes": sizes,
            "text_bytes": arguments.text.stat().st_size, "cpu_us": rounds}


def gain(figures, pair):
    """Answers per second of CPU with partitions, as a multiple of those without."""
    return statistics.median(each[pair[0]] / each[name_of(*pair)]
                             for each in figures["cpu_us"])


HEADER = ["codec", "partitions of", "size, % of the text", "CPU of the server, µs an answer",
          "answers for a second of CPU, ratio"]


def rows(figures):
    """In brackets: of the codec without partitions."""
    found = []
    for pair in PAIRS:
        names = (name_of(*pair), pair[0])
        sizes = [100 * figures["stored_bytes"][name] / figures["text_bytes"] for name in names]
        times = [statistics.median(cpu[name] for cpu in figures["cpu_us"]) for name in names]
        found.append([f"`{pair[0]}`", format_size(parse_size(pair[1])),
                      f"{sizes[0]:.2f} ({sizes[1]:.2f})", f"{times[0]:.0f} ({times[1]:.0f})",
                      f"{gain(figures, pair):.2f}"])
    return found


def main():
    parser = make_parser(__doc__, "quired", "quire-loadtest")
    parser.add_argument("text", type=pathlib.Path, nargs="?", metavar="TEXT", help="a file")
    parser.add_argument("--smoke", action="store_true", help="a small generated text, briefly")
    parser.add_argument("--block-size", default="256KiB", metavar="SIZE")
    parser.add_argument("--range-size", default="4KiB", metavar="SIZE")
    parser.add_argument("--dictionary-size", default="16MiB", metavar="SIZE")
    parser.add_argument("--memory", default="144MiB", metavar="SIZE",
                        help="of a server, in addition to what its archive takes "
                        "(default: %(default)s)")
    parser.add_argument("--requests", type=int, default=20_000, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.text and not arguments.smoke:
        parser.error("TEXT is required, unless --smoke is given")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        if arguments.smoke:
            write_corpus(make_documents(40, seed=3), f"{directory}/smoke")
            arguments.text, arguments.memory = pathlib.Path(directory, "smoke.raw"), "128MiB"
            arguments.requests, arguments.rounds, arguments.dictionary_size = 200, 1, "64KiB"
        figures = run_rounds(arguments, pathlib.Path(directory))
    print_figures(arguments, figures, [
        machine_load(), "",
        f"Ranges of {format_size(figures['range_size'])} of blocks of "
        f"{format_size(figures['block_size'])}", "", *markdown(HEADER, rows(figures))])


if __name__ == "__main__":
    main()
