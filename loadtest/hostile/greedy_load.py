#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of a polite client's rate remains next to a greedy one: 4 ranges of
16 KiB in flight, alone and next to 1,000 ranges of 1 MiB in flight.

    loadtest/hostile/greedy_load.py --build build/release

Both clients are quire-loadtest. The server distinguishes them by address: the polite one
uses IPv4, the greedy one IPv6, so the server listens on all of the machine's addresses.
They share the server's cores. With --text the server reads that file's text, which should
be larger than its block cache; otherwise generated documents, which are soon cached.
Prints medians of the rounds.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import (AS_IT_IS, build_archive, build_text_archive, find_programs, machine_load,
                         make_parser)
from live_server import LiveServer, make_documents
from markdown_table import markdown

PROGRAMS = ("quired", "quire-loadtest")
POLITE = ("127.0.0.1", "16KiB", 4)
GREEDY = ("[::1]", "1MiB", 1000)
# The greedy client begins earlier and ends later than the polite one.
MARGIN_SECONDS = 1


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--text", help="file whose text is served (default: generated documents)")
    parser.add_argument("--memory", default="256MiB", help="of the server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--smoke", action="store_true", help="a moment of each")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rounds, arguments.seconds = 1, 0.3
    return arguments


def start_load(loadtest, server, client, seconds):
    host, size, in_flight = client
    return subprocess.Popen(
        [loadtest, "bench", "--server", f"{host}:{server.address.rpartition(':')[2]}",
         "--range-size", size, "--in-flight", str(in_flight), "--duration", str(seconds),
         "--json"], stdout=subprocess.PIPE, text=True)


def finish_load(process):
    """Returns answers per second, and p50 and p99 in milliseconds."""
    with process:
        report = json.loads(process.stdout.read())
    return {"per_second": report["requests_per_second"],
            "p50_ms": report["latency_ms"]["p50"], "p99_ms": report["latency_ms"]["p99"]}


def measure(arguments, directory):
    """Returns the results of finish_load(), by case."""
    quired, loadtest = find_programs(arguments.build, *PROGRAMS)
    stem = f"{directory}/text"
    if arguments.text:
        archive = f"{stem}.quire"
        build_archive(quired, archive, [arguments.text], ["--codec", "zstd", *AS_IT_IS])
    else:
        archive = build_text_archive(quired, stem, make_documents(1_000, seed=11),
                                     ["--codec", "zstd"])
    found = {"polite, alone": [], "polite, next to the greedy client": [], "greedy": []}
    with LiveServer(str(quired), [f"bench={archive}"], "--memory", arguments.memory,
                    host="[::]") as server:
        finish_load(start_load(loadtest, server, POLITE, arguments.seconds))
        for _ in range(arguments.rounds):
            alone = start_load(loadtest, server, POLITE, arguments.seconds)
            found["polite, alone"].append(finish_load(alone))
            greedy = start_load(loadtest, server, GREEDY,
                                arguments.seconds + 2 * MARGIN_SECONDS)
            time.sleep(MARGIN_SECONDS)
            polite = start_load(loadtest, server, POLITE, arguments.seconds)
            found["polite, next to the greedy client"].append(finish_load(polite))
            found["greedy"].append(finish_load(greedy))
    return found


def table(arguments, found):
    """Returns lines of text and Markdown."""
    medians = {case: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
               for case, runs in found.items()}
    alone, loaded, _ = medians.values()
    rows = [[f"client {case}", f"{row['per_second']:,.0f} answers/s, p50 {row['p50_ms']:.2f} ms, "
             f"p99 {row['p99_ms']:.2f} ms"] for case, row in medians.items()]
    rows.append(["rate that the polite client keeps",
                 f"{loaded['per_second'] / alone['per_second']:.2f}"])
    return [f"{machine_load()}; medians of {arguments.rounds} rounds; --memory {arguments.memory}",
            "", *markdown(["what", "figure"], rows)]


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as directory:
        found = measure(arguments, directory)
    print_figures(arguments, found, table(arguments, found))


if __name__ == "__main__":
    main()
