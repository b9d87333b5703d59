#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures reads of an archive in an object store that answers after a delay: single cold reads, a
batch of ranges, many cold reads at once, and requests for each missing run.

    loadtest/bench/remote_bench.py --size 256MiB --delay-ms 30

The store, delayed_store, runs on the same machine, so that its CPU time and that of the client count,
too. Each figure begins with an empty cache. A cold read is of 4 KiB at a random offset, of which no
chunk has been read; the rate counts requests to the store, as some random ranges share a chunk.
"""
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, make_parser
from markdown_table import markdown
from live_server import LiveServer, make_stubs, parse_size

READ_BYTES = 4096
LINE_BYTES = 124


def write_text(path, size):
    """Writes text of which half cannot be compressed, so that the archive is large, too."""
    draw = random.Random(1)
    with path.open("wb") as file:
        for number in range(size // LINE_BYTES):
            file.write(b"%015d line %s\n" % (number, draw.randbytes(51).hex().encode()))


class Setup:
    def __init__(self, arguments, directory, stubs):
        self.arguments = arguments
        self.directory = directory
        self.stubs = stubs
        self.caches = 0

    def server(self, store_url, chunk):
        """Starts a server with an empty cache."""
        self.caches += 1
        return LiveServer(
            self.arguments.quired, [f"bench={store_url}/bench.quire"], "--memory",
            self.arguments.memory, "--store-cache",
            f"{self.directory}/cache{self.caches}:1TiB", "--store-chunk", chunk)


def request_count(server):
    """Returns (good requests, hedges and retries)."""
    text = server.metrics()
    def value(name):
        return int(float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[1]))
    return (value('quire_store_requests_total{outcome="good"}'),
            value("quire_store_hedges_total") + value("quire_store_retries_total"))


def cold_places(size, count, chunk, seed):
    """Returns places of ranges in different pieces of the text, each of more than a chunk."""
    # Blocks are of 64 KiB, compressed at most by half.
    piece = max(4 * chunk, 256 << 10)
    pieces = random.Random(seed).sample(range(size // piece - 1), min(count, size // piece - 1))
    return [number * piece for number in pieces]


def read(setup, stub, place):
    pb = setup.stubs.pb
    answer = stub.Read(pb.ReadRequest(
        archive="bench", range=pb.ByteRange(offset=place, size_bytes=READ_BYTES)),
                       timeout=60, wait_for_ready=True)
    assert len(answer.data) == READ_BYTES


def cold_reads(setup, store_url, size):
    """Returns milliseconds of single reads, and requests for each."""
    chunk = parse_size(setup.arguments.chunk)
    with setup.server(store_url, setup.arguments.chunk) as server, server.channel() as channel:
        stub = setup.stubs.rpc.ArchiveStub(channel)
        places = cold_places(size, setup.arguments.reads, chunk, 2)
        # The connections of client and store.
        read(setup, stub, size - READ_BYTES)
        before = request_count(server)
        times = []
        for place in places:
            begun = time.monotonic()
            read(setup, stub, place)
            times.append(1000 * (time.monotonic() - begun))
        after = request_count(server)
        more = after[1] - before[1]
        return times, (after[0] - before[0]) / len(places), more


def batch(setup, store_url, size):
    """Returns the seconds of a batch of ranges, its requests to the store, and CPU seconds."""
    pb = setup.stubs.pb
    draw = random.Random(3)
    places = [draw.randrange(size - READ_BYTES) for _ in range(256)]
    with setup.server(store_url, setup.arguments.chunk) as server, server.channel() as channel:
        stub = setup.stubs.rpc.ArchiveStub(channel)
        stub.ListArchives(pb.ListArchivesRequest(), timeout=60, wait_for_ready=True)
        request = pb.BatchReadRequest(archive="bench", items=[
            pb.BatchItem(tag=i, range=pb.ByteRange(offset=place, size_bytes=READ_BYTES))
            for i, place in enumerate(places)])
        before, cpu = request_count(server)[0], server.cpu_seconds()
        begun = time.monotonic()
        answered = 0
        for response in stub.BatchRead(iter([request]), timeout=60):
            for result in response.results:
                assert not result.HasField("status"), result.status
                answered += 1
        assert answered == len(places), answered
        seconds = time.monotonic() - begun
        return seconds, request_count(server)[0] - before, server.cpu_seconds() - cpu


def cold_rate(setup, store_url, size):
    """Returns requests to the store per second, 64 ranges at a time, and CPU seconds for each."""
    with setup.server(store_url, setup.arguments.rate_chunk) as server, \
            server.channel() as channel:
        read(setup, setup.stubs.rpc.ArchiveStub(channel), size - READ_BYTES)
        before, cpu = request_count(server)[0], server.cpu_seconds()
        output = subprocess.run(
            [setup.arguments.loadtest, "bench", "--server", server.address, "--range-size",
             str(READ_BYTES), "--in-flight", "64", "--requests", str(setup.arguments.rate_reads),
             "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
        gets = request_count(server)[0] - before
        return gets / json.loads(output)["seconds"], (server.cpu_seconds() - cpu) / gets


def measure(arguments, directory):
    text = directory / "bench.txt"
    size = parse_size(arguments.size) // LINE_BYTES * LINE_BYTES
    write_text(text, size)
    store = directory / "store"
    store.mkdir()
    build_archive(arguments.quired, store / "bench.quire", [text], ["--codec", "zstd"])
    setup = Setup(arguments, directory, make_stubs(directory))
    with subprocess.Popen([arguments.delayed_store, store, "--delay-ms", str(arguments.delay_ms)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().strip()
        times, gets, more = cold_reads(setup, url, size)
        batches = [batch(setup, url, size) for _ in range(arguments.rounds)]
        rates = [cold_rate(setup, url, size) for _ in range(arguments.rounds)]
        # It serves until its input ends.
        process.stdin.close()

    def medians(runs):
        return [statistics.median(values) for values in zip(*runs)]

    batch_seconds, batch_gets, batch_cpu = medians(batches)
    rate, rate_cpu = medians(rates)
    return {"delay_ms": arguments.delay_ms, "cold_read_ms": statistics.median(times),
            "cold_read_p95_ms": sorted(times)[len(times) * 95 // 100],
            "gets_per_cold_read": gets, "hedges_and_retries": more,
            "batch_256_seconds": batch_seconds, "batch_256_gets": batch_gets,
            "batch_256_cpu_seconds": batch_cpu, "cold_reads_per_second": rate,
            "cpu_us_per_cold_read": 1e6 * rate_cpu}


def main():
    parser = make_parser(__doc__, "quired", "quire-loadtest", "delayed_store")
    parser.add_argument("--size", default="256MiB", help="text of the archive (default: %(default)s)")
    parser.add_argument("--delay-ms", type=float, default=30,
                        help="delay of the store's answers (default: %(default)s)")
    parser.add_argument("--reads", type=int, default=200, help="single reads (default: %(default)s)")
    parser.add_argument("--rate-reads", type=int, default=3000,
                        help="reads of the rate (default: %(default)s)")
    parser.add_argument("--chunk", default="256KiB",
                        help="--store-chunk of reads and batches (default: %(default)s)")
    parser.add_argument("--rate-chunk", default="64KiB",
                        help="--store-chunk of the rate (default: %(default)s)")
    parser.add_argument("--memory", default="512MiB", help="memory of the server (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="a short run that measures nothing")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.size, arguments.reads, arguments.rate_reads = "16MiB", 10, 20
        arguments.rounds, arguments.delay_ms = 1, 1
    arguments.quired, arguments.loadtest, arguments.delayed_store = find_programs(
        arguments.build, "quired", "quire-loadtest", "delayed_store")
    with tempfile.TemporaryDirectory(prefix="quire-remote-") as directory:
        figures = measure(arguments, pathlib.Path(directory))
    store = f"store {arguments.delay_ms:g} ms away"
    print_figures(arguments, figures, markdown(("what", "figure"), [
        (f"{store}, cold read, median / p95",
         f"{figures['cold_read_ms']:.1f} / {figures['cold_read_p95_ms']:.1f} ms"),
        (f"{store}, requests per cold read, without hedges and retries",
         f"{figures['gets_per_cold_read']:.3f}"),
        (f"{store}, 256 cold ranges in a batch",
         f"{figures['batch_256_seconds']:.3f} s in {figures['batch_256_gets']:.0f} requests, "
         f"{figures['batch_256_cpu_seconds']:.3f} s of CPU"),
        (f"{store}, cold reads, 64 in flight, chunks of {arguments.rate_chunk}",
         f"{figures['cold_reads_per_second']:,.0f}/s, "
         f"{figures['cpu_us_per_cold_read']:.0f} µs of CPU each")]))


if __name__ == "__main__":
    main()
