#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much of gRPC's speed is left once quired has looked up, checked and sent
cached ranges of 16 KiB: unary Read beside an empty handler that returns a static
buffer through the same API, and BatchRead beside unary. One run, in rounds that
measure one after the other; medians of the rounds, and of the ratios within them.

    loadtest/api_limit.py --build build/release

Both servers and the client share the machine's cores; the client unpacks nothing.
Ends within two minutes.
"""
import os
import statistics
import tempfile

from bench_setup import (add_limit_options, build_text_archive, empty_service, find_programs,
                         limit_documents, machine_load, make_parser, run_rounds, settle_rounds,
                         warm_up)
from live_server import LiveServer

PROGRAMS = ("quired", "quire", "api_limit")
KINDS = ("empty unary", "quire unary", "empty batch", "quire batch")
# What is aimed at: of the first in proportion to the second.
AIMS = (("quire unary", "empty unary", 0.85), ("quire batch", "quire unary", 3.0),
        ("quire batch", "empty batch", None))
SECONDS_MAX = 110


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    add_limit_options(parser, channels=4, build_options="--codec zstd")
    parser.add_argument("--in-flight", type=int, default=64, help="unary calls")
    parser.add_argument("--batch-in-flight", type=int, default=1024, help="items")
    parser.add_argument("--range-size", type=int, default=16 << 10)
    return parser.parse_args()


def measure(arguments, folder):
    """Lists of what api_limit printed, by kind."""
    quired, quire, program = find_programs(arguments.build, *PROGRAMS)
    stem = f"{folder}/text"
    archive = build_text_archive(quired, stem, limit_documents(arguments),
                                 arguments.build_options.split())
    sizes = ["--range-size", str(arguments.range_size)]
    with LiveServer(str(quired), [f"bench={archive}"],
                    *arguments.serve_options.split()) as server, \
            empty_service(program, *sizes) as (empty, empty_pid):
        warm_up(quire, server, "bench", stem)
        return run_rounds(
            [program, "measure", *sizes, "--quire", server.address, "--quire-pid",
             server.process.pid, "--empty", empty, "--empty-pid", empty_pid, "--text-size",
             os.path.getsize(f"{stem}.raw"), "--in-flight", arguments.in_flight,
             "--batch-in-flight", arguments.batch_in_flight],
            arguments, KINDS, SECONDS_MAX)


def print_report(arguments, found):
    print(f"{machine_load()}; "
          f"{arguments.rounds} rounds of {arguments.milliseconds} ms, {arguments.channels} "
          f"connections, {arguments.in_flight} calls or {arguments.batch_in_flight} items in "
          f"flight, {arguments.range_size} bytes each\n")
    print("| what | answers/s, median | least | most | CPU of the server an answer, µs |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        rates = [report["answers_per_second"] for report in found[kind]]
        cpu = statistics.median(report["server_cpu_us"] for report in found[kind])
        print(f"| {kind} | {statistics.median(rates):,.0f} | {min(rates):,.0f} "
              f"| {max(rates):,.0f} | {cpu:.1f} |")
    print("\n| ratio | median of the rounds | least | most | aim |")
    print("|---|---|---|---|---|")
    for first, second, aim in AIMS:
        ratios = [a["answers_per_second"] / b["answers_per_second"]
                  for a, b in zip(found[first], found[second], strict=True)]
        print(f"| {first} / {second} | {statistics.median(ratios):.2f} | {min(ratios):.2f} "
              f"| {max(ratios):.2f} | {aim or '-'} |")


def main():
    arguments = parse_arguments()
    settle_rounds(arguments, KINDS, 300, SECONDS_MAX)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments, folder)
    print_report(arguments, found)


if __name__ == "__main__":
    main()
