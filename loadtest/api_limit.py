#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much of gRPC's speed is left once quired has looked up, checked and sent
cached ranges of 16 KiB: unary Read beside an empty handler that returns a static
buffer through the same API, and BatchRead beside unary. One run of many short
rounds, in which the servers take turns, every other round the other way round: a
machine that others use changes its speed within seconds. Medians and quartiles of
the rounds, and of the ratios within them.

    loadtest/api_limit.py --build build/release

Both servers and the client share the machine's cores; the client unpacks nothing.
Both servers have the same gRPC settings. Ends within two minutes.
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
    parser.add_argument("--only", choices=("unary", "batch"), help="kind of calls")
    parser.set_defaults(rounds=24, milliseconds=500)
    return parser.parse_args()


def kinds_of(arguments):
    return [kind for kind in KINDS if kind.endswith(arguments.only or "")]


def measure(arguments, folder):
    """Lists of what api_limit printed, by kind."""
    quired, quire, program = find_programs(arguments.build, *PROGRAMS)
    stem = f"{folder}/text"
    archive = build_text_archive(quired, stem, limit_documents(arguments),
                                 arguments.build_options.split())
    sizes = ["--range-size", str(arguments.range_size)]
    only = {"unary": ["--no-batch"], "batch": ["--no-unary"]}.get(arguments.only, [])
    with LiveServer(str(quired), [f"bench={archive}"],
                    *arguments.serve_options.split()) as server, \
            empty_service(program, *sizes) as (empty, empty_pid):
        warm_up(quire, server, "bench", stem)
        return run_rounds(
            [program, "measure", *sizes, "--quire", server.address, "--quire-pid",
             server.process.pid, "--empty", empty, "--empty-pid", empty_pid, "--text-size",
             os.path.getsize(f"{stem}.raw"), "--in-flight", arguments.in_flight,
             "--batch-in-flight", arguments.batch_in_flight, *only],
            arguments, kinds_of(arguments), SECONDS_MAX)


def spread(values, form):
    """Median, lower and upper quartile, as cells of a table."""
    values = sorted(values)
    quarter = len(values) // 4
    return " | ".join(format(value, form) for value in (
        statistics.median(values), values[quarter], values[-1 - quarter]))


def print_report(arguments, found):
    print(f"{machine_load()}; "
          f"{arguments.rounds} rounds of {arguments.milliseconds} ms, {arguments.channels} "
          f"connections, {arguments.in_flight} calls or {arguments.batch_in_flight} items in "
          f"flight, {arguments.range_size} bytes each\n")
    print("| what | answers/s, median | quartiles | | server's CPU µs an answer | quartiles | |")
    print("|---|---|---|---|---|---|---|")
    for kind, reports in found.items():
        print(f"| {kind} | {spread((each['answers_per_second'] for each in reports), ',.0f')}"
              f" | {spread((each['server_cpu_us'] for each in reports), '.1f')} |")
    print("\n| of each round | rates, median | quartiles | | aim | CPU µs more | quartiles | |")
    print("|---|---|---|---|---|---|---|---|")
    for first, second, aim in AIMS:
        if first in found and second in found:
            pairs = list(zip(found[first], found[second], strict=True))
            rates = (a["answers_per_second"] / b["answers_per_second"] for a, b in pairs)
            more = (a["server_cpu_us"] - b["server_cpu_us"] for a, b in pairs)
            print(f"| {first} / {second} | {spread(rates, '.2f')} | {aim or '-'} "
                  f"| {spread(more, '.1f')} |")


def main():
    arguments = parse_arguments()
    settle_rounds(arguments, kinds_of(arguments), 100, SECONDS_MAX)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments, folder)
    print_report(arguments, found)


if __name__ == "__main__":
    main()
