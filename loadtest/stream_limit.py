#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How much of gRPC's speed is left when quired streams text: Scan and ReadStream
beside an empty handler that streams a static buffer through the same API, in
messages of several sizes. One run, in rounds that measure one after the other;
medians of the rounds, and of the ratios within them.

    loadtest/stream_limit.py --build build/release

All servers and the client share the machine's cores; the client counts bytes and
unpacks nothing. "cached": all of the text fits the block cache. "not cached":
text four times as long, of which the cache holds next to nothing, read past the
page cache and decoded; there decoding is most of the work, so that its limit is
not the empty handler alone. Ends within three minutes.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from api_limit import warm_up
from disk_runs import cold_server
from live_server import LiveServer, make_documents, write_corpus

EMPTY = "empty, messages of {} KiB"
EMPTY_SIZES = (256, 1024, 2048)
QUIRE = ("quire Scan, cached", "quire ReadStream, cached", "quire Scan, not cached")
KINDS = (*map(EMPTY.format, EMPTY_SIZES), *QUIRE)
SECONDS_MAX = 170
AIM = 0.85


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release",
                        help="build folder with quired, quire and api_limit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--milliseconds", type=int, default=1500, help="of each measurement")
    parser.add_argument("--channels", type=int, default=1, help="connections, a stream on each")
    parser.add_argument("--build-options", default="--codec rlz --dictionary-size 1MiB",
                        help="to quired build")
    parser.add_argument("--serve-options", default="--memory 512MiB",
                        help="to quired serve, for what is cached")
    parser.add_argument("--page-cache", action="store_true",
                        help="through the page cache, for where O_DIRECT does not work")
    parser.add_argument("--smoke", action="store_true",
                        help="a moment of each: does it all work?")
    return parser.parse_args()


def build_archive(arguments, folder, name, documents):
    """(path of the archive, stem of its text)"""
    stem = f"{folder}/{name}"
    write_corpus(documents, stem)
    subprocess.run([arguments.build / "bin" / "quired", "build", "-o", f"{stem}.quire",
                    *arguments.build_options.split(), f"{stem}.tar"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"{stem}.quire", stem


def measure(arguments, folder):
    """Lists of what api_limit printed, by kind."""
    arguments.build = arguments.build.resolve()
    bin_folder = arguments.build / "bin"
    documents = make_documents(60 if arguments.smoke else 1000, seed=11)
    archive, stem = build_archive(arguments, folder, "text", documents)
    cold, cold_stem = build_archive(
        arguments, folder, "long",
        [(f"{name}.{i}", text[i:] + text[:i]) for i in range(4) for name, text in documents])
    with LiveServer(str(bin_folder / "quired"), [f"bench={archive}"],
                    *arguments.serve_options.split()) as server, \
            cold_server(str(bin_folder / "quired"), "bench", cold, "--direct-io",
                        "off" if arguments.page_cache else "auto") as cold_one, \
            subprocess.Popen([bin_folder / "api_limit", "empty"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True) as empty:
        warm_up(server, arguments.build, stem)
        result = subprocess.run(
            [str(word) for word in (
                bin_folder / "api_limit", "streams", "--quire", server.address, "--quire-pid",
                server.process.pid, "--cold", cold_one.address, "--cold-pid",
                cold_one.process.pid, "--empty", empty.stdout.readline().strip(), "--empty-pid",
                empty.pid, "--text-size", os.path.getsize(f"{stem}.raw"), "--cold-text-size",
                os.path.getsize(f"{cold_stem}.raw"), "--rounds", arguments.rounds,
                "--milliseconds", arguments.milliseconds, "--channels", arguments.channels)],
            stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS_MAX)
        empty.stdin.close()
    found = {kind: [] for kind in KINDS}
    for line in result.stdout.splitlines():
        report = json.loads(line)
        found[report["what"]].append(report)
    return found


def print_report(arguments, found):
    def values(kind, name="megabytes_per_second"):
        return [report[name] for report in found[kind]]

    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; "
          f"{arguments.rounds} rounds of {arguments.milliseconds} ms, {arguments.channels} "
          f"connections with a stream each\n")
    print("| what | MB/s, median | least | most | bytes a message "
          "| CPU of the server, ms/GB | of the client |")
    print("|---|---|---|---|---|---|---|")
    for kind in KINDS:
        rates = values(kind)
        size, server, client = (
            statistics.median(values(kind, name))
            for name in ("message_bytes", "server_cpu_ms_per_gigabyte",
                         "client_cpu_ms_per_gigabyte"))
        print(f"| {kind} | {statistics.median(rates):,.0f} | {min(rates):,.0f} "
              f"| {max(rates):,.0f} | {size:,.0f} | {server:.0f} | {client:.0f} |")
    best = [max(rates) for rates in zip(*(values(EMPTY.format(size)) for size in EMPTY_SIZES),
                                        strict=True)]
    print("\n| of the best empty handler of the round | median of the rounds | least | most | aim |")
    print("|---|---|---|---|---|")
    for kind in QUIRE:
        ratios = [rate / limit for rate, limit in zip(values(kind), best, strict=True)]
        print(f"| {kind} | {statistics.median(ratios):.2f} | {min(ratios):.2f} "
              f"| {max(ratios):.2f} | {'-' if 'not' in kind else AIM} |")


def main():
    arguments = parse_arguments()
    if arguments.smoke:
        arguments.rounds, arguments.milliseconds = 1, 20
    if arguments.rounds * len(KINDS) * (arguments.milliseconds + 400) > SECONDS_MAX * 1000:
        sys.exit("stream_limit: that would take more than three minutes")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments, folder)
    assert all(len(found[kind]) == arguments.rounds for kind in KINDS), found
    print_report(arguments, found)


if __name__ == "__main__":
    main()
