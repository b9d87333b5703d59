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
import os
import statistics
import tempfile

from bench_setup import (add_limit_options, build_text_archive, empty_service, find_programs,
                         limit_documents, machine_load, make_parser, run_rounds, settle_rounds,
                         warm_up)
from disk_runs import cold_server
from live_server import LiveServer

PROGRAMS = ("quired", "quire", "api_limit")
EMPTY = "empty, messages of {} KiB"
EMPTY_SIZES = (256, 1024, 2048)
QUIRE = ("quire Scan, cached", "quire ReadStream, cached", "quire Scan, not cached")
KINDS = (*map(EMPTY.format, EMPTY_SIZES), *QUIRE)
SECONDS_MAX = 170
AIM = 0.85


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    # A stream on each connection.
    add_limit_options(parser, channels=1, build_options="--codec rlz --dictionary-size 1MiB")
    parser.add_argument("--page-cache", action="store_true",
                        help="through the page cache, for where O_DIRECT does not work")
    return parser.parse_args()


def measure(arguments, folder):
    """Lists of what api_limit printed, by kind."""
    quired, quire, program = find_programs(arguments.build, *PROGRAMS)
    documents = limit_documents(arguments)
    stem, cold_stem = f"{folder}/text", f"{folder}/long"
    options = arguments.build_options.split()
    archive = build_text_archive(quired, stem, documents, options)
    cold_archive = build_text_archive(
        quired, cold_stem,
        [(f"{name}.{i}", text[i:] + text[:i]) for i in range(4) for name, text in documents],
        options)
    with LiveServer(str(quired), [f"bench={archive}"],
                    *arguments.serve_options.split()) as server, \
            cold_server(quired, "bench", cold_archive, "--direct-io",
                        "off" if arguments.page_cache else "auto") as cold, \
            empty_service(program) as (empty, empty_pid):
        warm_up(quire, server, "bench", stem)
        return run_rounds(
            [program, "streams", "--quire", server.address, "--quire-pid", server.process.pid,
             "--cold", cold.address, "--cold-pid", cold.process.pid, "--empty", empty,
             "--empty-pid", empty_pid, "--text-size", os.path.getsize(f"{stem}.raw"),
             "--cold-text-size", os.path.getsize(f"{cold_stem}.raw")],
            arguments, KINDS, SECONDS_MAX)


def print_report(arguments, found):
    def values(kind, name="megabytes_per_second"):
        return [report[name] for report in found[kind]]

    print(f"{machine_load()}; "
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
    settle_rounds(arguments, KINDS, 400, SECONDS_MAX)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments, folder)
    print_report(arguments, found)


if __name__ == "__main__":
    main()
