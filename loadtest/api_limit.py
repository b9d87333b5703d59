#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much of gRPC's speed is left once quired has looked up, checked and sent
cached text: unary Read and BatchRead of ranges of 16 KiB, and Scan, each compared
with an empty handler that sends a static buffer through the same API with the same
settings. One run of many short rounds in which the servers take turns, every other
round with the other one first: a machine that others use changes its speed within
seconds. Medians and quartiles of the rounds, and of the ratios within them.

    loadtest/api_limit.py --build build/release

Both servers and the client share the machine's cores; the client unpacks nothing.
Ends within two minutes.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from bench_json import add_json_option, print_figures
from bench_setup import (build_text_archive, empty_service, find_programs, machine_load,
                         make_parser)
from codec_table import markdown
from live_server import LiveServer, make_documents

PROGRAMS = ("quired", "quire", "api_limit")
METHODS = ("unary", "batch", "scan")
# What is aimed at: of the first in proportion to the second, in messages a second,
# of scans in bytes.
AIMS = (("quire unary", "empty unary", 0.85), ("quire batch", "quire unary", 3.0),
        ("quire batch", "empty batch", None), ("quire scan", "empty scan", 0.85))
SECONDS_MAX = 110


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--milliseconds", type=int, default=500, help="of each measurement")
    parser.add_argument("--channels", type=int, default=4, help="connections")
    parser.add_argument("--in-flight", type=int, default=64, help="unary calls")
    parser.add_argument("--batch-in-flight", type=int, default=1024, help="items")
    parser.add_argument("--range-size", type=int, default=16 << 10)
    parser.add_argument("--build-options", default="--codec zstd", help="to quired build")
    parser.add_argument("--serve-options", default="--memory 512MiB", help="to quired serve")
    add_json_option(parser)
    parser.add_argument("--smoke", action="store_true", help="a moment of each: does it all work?")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rounds, arguments.milliseconds = 1, 20
    seconds = arguments.rounds * 2 * len(METHODS) * (arguments.milliseconds + 100) / 1000
    if seconds > SECONDS_MAX:
        sys.exit(f"{pathlib.Path(__file__).name}: --rounds {arguments.rounds} of --milliseconds "
                 f"{arguments.milliseconds} would take {seconds:.0f} s; at most {SECONDS_MAX} s")
    return arguments


def measure(arguments, directory):
    """Lists of what api_limit printed, by kind."""
    quired, quire, program = find_programs(arguments.build, *PROGRAMS)
    stem = f"{directory}/text"
    documents = make_documents(60 if arguments.smoke else 1000, seed=11)
    archive = build_text_archive(quired, stem, documents, arguments.build_options.split())
    text_size = str(os.path.getsize(f"{stem}.raw"))
    size = ["--range-size", str(arguments.range_size)]
    with LiveServer(str(quired), [f"bench={archive}"],
                    *arguments.serve_options.split()) as server, \
            empty_service(program, *size) as (empty, empty_pid):
        # All blocks are cached from here on.
        subprocess.run([quire, "--server", server.address, "range", "bench", "0", text_size],
                       check=True, stdout=subprocess.DEVNULL)
        command = [program, "measure", *size, "--quire", server.address, "--quire-pid",
                   server.process.pid, "--empty", empty, "--empty-pid", empty_pid, "--text-size",
                   text_size, "--in-flight", arguments.in_flight, "--batch-in-flight",
                   arguments.batch_in_flight, "--rounds", arguments.rounds, "--milliseconds",
                   arguments.milliseconds, "--channels", arguments.channels]
        result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                                check=True, timeout=10 * SECONDS_MAX)
    found = {f"{server} {method}": [] for method in METHODS for server in ("empty", "quire")}
    for line in result.stdout.splitlines():
        report = json.loads(line)
        found[report["what"]].append(report)
    assert all(len(reports) == arguments.rounds for reports in found.values()), found
    return found


def spread(values, form):
    """Median, and lower and upper quartile."""
    values = sorted(values)
    quarter = len(values) // 4
    return (f"{statistics.median(values):{form}} "
            f"({values[quarter]:{form}} to {values[-1 - quarter]:{form}})")


def report_lines(arguments, found):
    """Markdown lines."""
    rates = [[kind, spread((each["answers_per_second"] for each in reports), ",.0f"),
              format(statistics.median(each["megabytes_per_second"] for each in reports), ",.0f"),
              spread((each["server_cpu_us"] for each in reports), ".1f")]
             for kind, reports in found.items()]
    ratios = []
    for first, second, aim in AIMS:
        rate = "megabytes_per_second" if "scan" in first else "answers_per_second"
        pairs = list(zip(found[first], found[second], strict=True))
        ratios.append([f"{first} / {second}", spread((a[rate] / b[rate] for a, b in pairs), ".2f"),
                       str(aim or "-"),
                       spread((a["server_cpu_us"] - b["server_cpu_us"] for a, b in pairs), ".1f")])
    return [f"{machine_load()}; {arguments.rounds} rounds of {arguments.milliseconds} ms, "
            f"{arguments.channels} connections, {arguments.in_flight} calls or "
            f"{arguments.batch_in_flight} items in flight, {arguments.range_size} bytes each; a "
            "scan on each connection, whose messages count as answers. Medians and quartiles.", "",
            *markdown(["calls", "answers/s", "MB/s", "CPU of the server, µs an answer"], rates), "",
            *markdown(["of each round", "ratio of rates", "aim", "CPU µs more"], ratios)]


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as directory:
        found = measure(arguments, directory)
    print_figures(arguments, found, report_lines(arguments, found))


if __name__ == "__main__":
    main()
