#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of gRPC's speed remains when quired looks up, checks and sends cached
text: unary Read and BatchRead of ranges of 16 KiB, and Scan in messages of up to 1 MiB,
compared with an empty handler that sends a static buffer through the same API with the
same settings. Answers of a scan are MiB of its text.

    loadtest/bench/api_limit.py --build build/release

quire-loadtest reads from both servers in short turns, alternating the order: the speed of
a shared machine changes within seconds. It shares the cores with them, and takes as much
of them as they do, so compare CPU times of the server. Prints medians and quartiles of
the rounds, and of the ratios within them.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_text_archive, empty_service, find_programs, make_parser
from live_server import LiveServer, make_documents
from markdown_table import markdown

PROGRAMS = ("quired", "quire", "quire-loadtest", "empty_server")
RANGES = ["--range-size", "16KiB"]
MODES = {"unary": [*RANGES, "--mode", "random", "--in-flight", "64"],
         "batch": [*RANGES, "--mode", "batch", "--batch-size", "1000", "--in-flight", "4"],
         "scan": ["--mode", "full", "--in-flight", "4"]}
# The empty handler scans a text of 20 messages, about as long as quired's.
EMPTY_SCAN = ["--range-size", "1048576", "--scan-ranges", "20"]
SERVERS = ("empty", "quire")


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--build-options", default="--codec zstd", help="to quired build")
    parser.add_argument("--serve-options", default="--memory 512MiB", help="to quired serve")
    parser.add_argument("--smoke", action="store_true", help="a moment of each")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rounds, arguments.seconds = 1, 0.1
    return arguments


def cpu_seconds(process_id):
    """Returns the CPU time of a process, by clock_getcpuclockid(3)."""
    return time.clock_gettime((~process_id << 3) | 2)


def load(arguments, loadtest, address, process_id, mode):
    """Returns answers per second, and the server's CPU time per answer."""
    before = cpu_seconds(process_id)
    run = subprocess.run(
        [loadtest, "bench", "--server", address, *MODES[mode], "--connections", "4",
         "--duration", str(arguments.seconds), "--json"],
        check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(run.stdout)
    answers = report["text_bytes"] / 2**20 if mode == "scan" else report["right"]
    return {"answers_per_second": answers / report["seconds"],
            "cpu_us": 1e6 * (cpu_seconds(process_id) - before) / answers}


def measure(arguments, directory):
    """Returns the results of load(), by server and mode."""
    quired, quire, loadtest, empty = find_programs(arguments.build, *PROGRAMS)
    stem = f"{directory}/text"
    documents = make_documents(60 if arguments.smoke else 1000, seed=11)
    archive = build_text_archive(quired, stem, documents, arguments.build_options.split())
    found = {(server, mode): [] for mode in MODES for server in SERVERS}
    with LiveServer(quired, [f"bench={archive}"], *arguments.serve_options.split()) as server, \
            empty_service(empty) as empty_ranges, \
            empty_service(empty, *EMPTY_SCAN) as empty_scan:
        # All blocks are cached from here on.
        subprocess.run([quire, "--server", server.address, "range", "bench", "0",
                        str(os.path.getsize(f"{stem}.raw"))],
                       check=True, stdout=subprocess.DEVNULL)
        for number in range(arguments.rounds):
            for mode in MODES:
                targets = {"empty": empty_scan if mode == "scan" else empty_ranges,
                           "quire": (server.address, server.process.pid)}
                for name in SERVERS[::-1 if number % 2 else 1]:
                    found[name, mode].append(load(arguments, loadtest, *targets[name], mode))
    return {f"{name} {mode}": rounds for (name, mode), rounds in found.items()}


def spread(values, form):
    """Returns the median, and the lower and upper quartile."""
    values = sorted(values)
    quarter = len(values) // 4
    return (f"{statistics.median(values):{form}} "
            f"({values[quarter]:{form}} to {values[-1 - quarter]:{form}})")


def table(found):
    """Returns Markdown lines."""
    rows = []
    for kind, rounds in found.items():
        empty = found[kind.replace("quire", "empty")]
        cells = [spread((each[name] / other[name]
                         for each, other in zip(rounds, empty, strict=True)), ".2f")
                 if kind.startswith("quire") else "-" for name in ("answers_per_second", "cpu_us")]
        rows.append([kind, spread((each["answers_per_second"] for each in rounds), ",.0f"),
                     spread((each["cpu_us"] for each in rounds), ".1f"), *cells])
    return markdown(["calls", "answers/s", "CPU of the server, µs per answer",
                     "answers/s, of the empty handler's", "CPU, of the empty handler's"], rows)


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as directory:
        found = measure(arguments, directory)
    print_figures(arguments, found, table(found))


if __name__ == "__main__":
    main()
