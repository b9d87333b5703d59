#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the Python package against a real server on this machine.

Prints rates next to their targets. The package with the extras stored, fsspec and web
must be importable.

usage: python_bench.py QUIRED
"""
import importlib.metadata
import pathlib
import random
import subprocess
import sys
import tempfile
import time

LOADTEST = pathlib.Path(__file__).resolve().parents[3] / "loadtest"
sys.path[:0] = [str(LOADTEST / "harness"), str(LOADTEST / "checks")]
# pylint: disable=wrong-import-position
from crawl_test import Crawl
from live_server import LiveServer, write_corpus

import fsspec
import quire_archive
from quire_archive import captures, wacz

DOCUMENTS = 30_000
BATCH = 10_000
SIZE = 2000
ROUNDS = 3


def best(measure):
    """Units per second of the best of some rounds; `measure` returns the units."""
    rates = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        count = measure()
        rates.append(count / (time.perf_counter() - started))
    return max(rates)


def show(what, rate, target, unit):
    print(f"{what:44}{rate:>12,.0f} {unit:8} target {target:>11,} ratio {rate / target:.2f}")


def make_crawl(quired, directory):
    """A crawl with a capture for each document, and its request."""
    draw = random.Random(3)
    words = [draw.randbytes(4).hex().encode() for _ in range(2000)]
    crawl = Crawl()
    for number in range(DOCUMENTS):
        crawl.add_response(
            f"https://www.site-{number % 50}.example/dir/{number % 300}/Page-{number}.html?b=1&a=2",
            f"2021-06-15T12:{number // 60 % 60:02}:{number % 60:02}Z",
            b" ".join(draw.choices(words, k=draw.choice((50, 500, 1500)))),
            "Content-Type: text/html", "Server: example", "Cache-Control: max-age=3600, public",
            "Date: Tue, 15 Jun 2021 12:30:45 GMT", "Set-Cookie: a=b; path=/; secure")
    pathlib.Path(directory, "crawl.warc").write_bytes(b"".join(crawl.records))
    subprocess.run([quired, "build", "--quiet", "-o", f"{directory}/crawl.quire",
                    f"{directory}/crawl.warc"], check=True)
    return f"{directory}/crawl.quire"


def make_archive(quired, directory):
    draw = random.Random(1)
    words = [draw.randbytes(4).hex().encode() for _ in range(2000)]
    documents = [(f"page-{n:06}", b" ".join(draw.choices(words, k=SIZE // 9 + 1))[:SIZE])
                 for n in range(DOCUMENTS)]
    write_corpus(documents, f"{directory}/pages")
    subprocess.run([quired, "build", "--quiet", "-o", f"{directory}/pages.quire",
                    f"{directory}/pages.tar"], check=True)
    return f"{directory}/pages.quire"


def measure(server):
    draw = random.Random(2)
    client = quire_archive.connect(server.address)
    archive = client["pages"]
    names = draw.sample([document.name for document in archive], BATCH)
    many = best(lambda: sum(1 for answer in archive.get_many(names) if answer.data))
    single = best(lambda: sum(1 for name in names[:2000] if archive.read(name)))
    show("get_many, 10,000 documents of 2 KB", many, 100_000, "/s")
    show("single reads of the same", single, int(many / 10), "/s")
    print(f"  get_many is {many / single:.1f} times as fast as single reads; target 10")
    fs = fsspec.filesystem("quire", server=server.address)
    paths = [f"pages/{name}" for name in names]
    show("cat_ranges, 10,000 of 1 KB",
         best(lambda: len(fs.cat_ranges(paths, 100, 1100, on_error="raise"))), 80_000, "/s")
    for encoding in ("stored", "identity"):
        with quire_archive.connect(server.address, encoding=encoding) as scanner:
            rate = best(lambda scanner=scanner: sum(
                map(len, scanner["pages"].stream_range()))) / 1e6
        show(f"scan, {encoding}", rate, 800, "MB/s")
    show("listing", best(lambda: sum(1 for _ in archive)), 1_000_000, "/s")
    crawl = client["crawl"].pinned()
    show("quire-web cdxj, captures", best(lambda: captures.write_index(
        captures.read_captures(crawl), "space", len)), 15_000, "/s")
    with tempfile.TemporaryDirectory() as directory:
        show("quire-web wacz, captures", best(lambda: wacz.write_wacz(
            crawl, directory, "crawl.wacz").capture_count), 15_000, "/s")


def main():
    (quired,) = sys.argv[1:]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}"
                         for name in ("grpcio", "protobuf", "xxhash", "zstandard", "fsspec", "surt"))
    print(f"Python {sys.version.split()[0]}, {versions}; best of {ROUNDS} rounds")
    with tempfile.TemporaryDirectory() as directory:
        archives = [make_archive(quired, directory), make_crawl(quired, directory)]
        with LiveServer(quired, archives) as server:
            measure(server)


if __name__ == "__main__":
    main()
