#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What quire-http costs: its CPU time per range, and its memory with many slow readers.

    loadtest/bench/http_bench.py --build build/release

Readers on keep-alive connections ask for ranges at random; the CPU time is the
gateway's alone. Then slow readers each take a large range a few bytes at a time.
Fails if one of them is refused, or if the process takes more than --memory.
"""
import concurrent.futures
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_text_archive, find_programs, machine_load, make_parser
from live_gateway import LiveGateway
from live_server import LiveServer, make_documents, parse_size, raise_file_limit
from markdown_table import markdown


def read_ranges(gateway, size_bytes, range_size, requests, seed):
    draw = random.Random(seed)
    with gateway.connect() as connection:
        for _ in range(requests):
            first = draw.randrange(size_bytes - range_size)
            reply = connection.ask("/v1/bench/space", Range=f"bytes={first}-{first + range_size - 1}")
            if reply.status != 206 or len(reply.body) != range_size:
                raise RuntimeError(f"unexpected answer: {reply}")


def measure_ranges(arguments, gateway, size_bytes):
    rows = []
    with concurrent.futures.ThreadPoolExecutor(arguments.readers) as pool:
        for text in arguments.sizes.split(","):
            each = arguments.requests // arguments.readers
            before, started = gateway.cpu_seconds(), time.monotonic()
            for done in [pool.submit(read_ranges, gateway, size_bytes, parse_size(text), each, seed)
                         for seed in range(arguments.readers)]:
                done.result()
            count = each * arguments.readers
            rows.append({"range": text, "requests": count,
                         "cpu_us": 1e6 * (gateway.cpu_seconds() - before) / count,
                         "requests_per_second": count / (time.monotonic() - started)})
    return rows


def measure_slow_readers(arguments, gateway, size_bytes):
    raise_file_limit(arguments.slow_readers + 100)
    readers = [gateway.connect(receive_buffer=4096) for _ in range(arguments.slow_readers)]
    try:
        for number, reader in enumerate(readers):
            reader.send(b"GET /v1/bench/space HTTP/1.1\r\nHost: localhost\r\nRange: bytes=%d-\r\n\r\n"
                        % (number % (size_bytes // 2)))
        statuses = [reader.read_head()[0] for reader in readers]
        for _ in range(arguments.rounds):
            for reader in readers:
                if len(reader.take(4096)) < 4096:
                    raise RuntimeError("an answer was cut")
    finally:
        for reader in readers:
            reader.socket.close()
    peak_bytes = gateway.resident_peak_bytes()
    if set(statuses) != {206} or peak_bytes > parse_size(arguments.memory):
        raise RuntimeError(f"{statuses.count(206)} of {len(readers)} slow readers were served, "
                           f"in {peak_bytes} bytes")
    return {"slow_readers": len(readers), "resident_peak_bytes": peak_bytes}


def main():
    parser = make_parser(__doc__, "quired", "quire-http")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--sizes", default="16KiB", help="of the ranges")
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--slow-readers", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5, help="of 4 KiB of each slow reader")
    parser.add_argument("--memory", default="128MiB", help="of the gateway")
    add_json_option(parser)
    arguments = parser.parse_args()
    quired, quire_http = find_programs(arguments.build, "quired", "quire-http")
    with tempfile.TemporaryDirectory() as directory:
        documents = make_documents(arguments.documents, seed=5)
        archive = build_text_archive(quired, str(pathlib.Path(directory) / "bench"), documents,
                                     ["--dictionary-size", "256KiB"])
        size_bytes = sum(len(data) for _, data in documents)
        with LiveServer(quired, [f"bench={archive}"], "--memory", "512MiB") as server, \
                LiveGateway(quire_http, server.address, "--memory", arguments.memory,
                            "--drain-timeout", "1s") as gateway:
            rows = measure_ranges(arguments, gateway, size_bytes)
            slow = measure_slow_readers(arguments, gateway, size_bytes)
    print_figures(arguments, {"ranges": rows, "slow": slow}, [
        machine_load(), "",
        *markdown(["range", "requests", "gateway CPU, us per range", "ranges per second"],
                  [[row["range"], str(row["requests"]), f"{row['cpu_us']:.1f}",
                    f"{row['requests_per_second']:.0f}"] for row in rows]),
        "", f"{slow['slow_readers']} slow readers at the same time: "
        f"{slow['resident_peak_bytes'] / 2**20:.0f} MiB resident at most, --memory "
        f"{arguments.memory}"])


if __name__ == "__main__":
    main()
