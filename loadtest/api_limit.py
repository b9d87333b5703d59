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
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from live_server import LiveServer, make_documents, write_corpus

KINDS = ("empty unary", "quire unary", "empty batch", "quire batch")
# What is aimed at: of the first in proportion to the second.
AIMS = (("quire unary", "empty unary", 0.85), ("quire batch", "quire unary", 3.0),
        ("quire batch", "empty batch", None))
SECONDS_MAX = 110


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release",
                        help="build folder with quired and api_limit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--milliseconds", type=int, default=1500, help="of each measurement")
    parser.add_argument("--channels", type=int, default=4, help="connections")
    parser.add_argument("--in-flight", type=int, default=64, help="unary calls")
    parser.add_argument("--batch-in-flight", type=int, default=1024, help="items")
    parser.add_argument("--range-size", type=int, default=16 << 10)
    parser.add_argument("--build-options", default="--codec zstd", help="to quired build")
    parser.add_argument("--serve-options", default="--memory 512MiB", help="to quired serve")
    parser.add_argument("--smoke", action="store_true",
                        help="a moment of each: does it all work?")
    return parser.parse_args()


def warm_up(server, build, stem):
    """Reads everything once: all blocks are cached from then on."""
    subprocess.run([build / "bin" / "quire", "--server", server.address, "range", "bench", "0",
                    str(os.path.getsize(f"{stem}.raw"))], check=True, stdout=subprocess.DEVNULL)


def measure(arguments, folder):
    """Lists of what api_limit printed, by kind."""
    build = arguments.build.resolve()
    stem = f"{folder}/text"
    write_corpus(make_documents(60 if arguments.smoke else 1000, seed=11), stem)
    subprocess.run([build / "bin" / "quired", "build", "-o", f"{stem}.quire",
                    *arguments.build_options.split(), f"{stem}.tar"],
                   check=True, stdout=subprocess.DEVNULL)
    program = str(build / "bin" / "api_limit")
    sizes = ["--range-size", str(arguments.range_size)]
    with LiveServer(str(build / "bin" / "quired"), [f"bench={stem}.quire"],
                    *arguments.serve_options.split()) as server, \
            subprocess.Popen([program, "empty", *sizes], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True) as empty:
        warm_up(server, build, stem)
        result = subprocess.run(
            [program, "measure", *sizes, "--quire", server.address, "--quire-pid",
             str(server.process.pid), "--empty", empty.stdout.readline().strip(), "--empty-pid",
             str(empty.pid), "--text-size", str(os.path.getsize(f"{stem}.raw")), "--rounds",
             str(arguments.rounds), "--milliseconds", str(arguments.milliseconds), "--channels",
             str(arguments.channels), "--in-flight", str(arguments.in_flight),
             "--batch-in-flight", str(arguments.batch_in_flight)],
            stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS_MAX)
        empty.stdin.close()
    found = {kind: [] for kind in KINDS}
    for line in result.stdout.splitlines():
        report = json.loads(line)
        found[report["what"]].append(report)
    return found


def print_report(arguments, found):
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; "
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
    if arguments.smoke:
        arguments.rounds, arguments.milliseconds = 1, 20
    if arguments.rounds * 4 * (arguments.milliseconds + 300) > SECONDS_MAX * 1000:
        sys.exit("api_limit: that would take more than two minutes")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments, folder)
    assert all(len(found[kind]) == arguments.rounds for kind in KINDS), found
    print_report(arguments, found)


if __name__ == "__main__":
    main()
