#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the Python package against a real server on this machine.

The package with the extras stored, fsspec and web must be importable.

usage: python_bench.py [--json FILE] [--documents N] QUIRED
"""
import argparse
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
from bench_json import add_json_option, print_figures
from crawl_test import Crawl
from live_server import LiveServer, write_corpus

import fsspec
import quire_archive
from quire_archive import captures, wacz
from quire_archive.records import WithdrawnCount

SIZE = 2000
ROUNDS = 5


def best(measure):
    """(Units per second, microseconds of this process's CPU time per unit), each the best of
    some rounds; `measure` returns the units."""
    rates, times = [], []
    for _ in range(ROUNDS):
        started, before = time.perf_counter(), time.process_time()
        count = measure()
        times.append((time.process_time() - before) / count * 1e6)
        rates.append(count / (time.perf_counter() - started))
    return max(rates), min(times)


def make_crawl(quired, directory, count):
    """A crawl with a capture for each document, and its request."""
    draw = random.Random(3)
    words = [draw.randbytes(4).hex().encode() for _ in range(2000)]
    crawl = Crawl()
    for number in range(count):
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


def make_archive(quired, directory, count):
    draw = random.Random(1)
    words = [draw.randbytes(4).hex().encode() for _ in range(2000)]
    documents = [(f"page-{n:06}", b" ".join(draw.choices(words, k=SIZE // 9 + 1))[:SIZE])
                 for n in range(count)]
    write_corpus(documents, f"{directory}/pages")
    subprocess.run([quired, "build", "--quiet", "-o", f"{directory}/pages.quire",
                    f"{directory}/pages.tar"], check=True)
    return f"{directory}/pages.quire"


def measure(server, count):
    """Returns what best() does, by what is measured; bytes of scans, else documents."""
    draw = random.Random(2)
    client = quire_archive.connect(server.address)
    archive = client["pages"]
    names = draw.sample([document.name for document in archive], min(count, 10_000))
    rates = {
        "get_many": best(lambda: sum(1 for answer in archive.get_many(names) if answer.data)),
        "read": best(lambda: sum(1 for name in names[:2000] if archive.read(name)))}
    fs = fsspec.filesystem("quire", server=server.address)
    paths = [f"pages/{name}" for name in names]
    rates["cat_ranges"] = best(
        lambda: len(fs.cat_ranges(paths, 100, 1100, on_error="raise")))
    for encoding in ("stored", "identity"):
        with quire_archive.connect(server.address, encoding=encoding) as scanner:
            rates[f"scan_{encoding}"] = best(lambda scanner=scanner: sum(
                map(len, scanner["pages"].stream_range())))
    rates["list"] = best(lambda: sum(1 for _ in archive))
    crawl = client["crawl"].pinned()
    rates["cdxj"] = best(lambda: captures.write_index(
        captures.read_captures(crawl, WithdrawnCount()), "space", len))
    with tempfile.TemporaryDirectory() as directory:
        rates["wacz"] = best(lambda: wacz.write_wacz(crawl, directory, "crawl.wacz").capture_count)
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quired")
    parser.add_argument("--documents", type=int, default=30_000, help="and captures")
    add_json_option(parser)
    arguments = parser.parse_args()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}"
                         for name in ("grpcio", "protobuf", "xxhash", "zstandard", "fsspec", "surt"))
    with tempfile.TemporaryDirectory() as directory:
        archives = [make(arguments.quired, directory, arguments.documents)
                    for make in (make_archive, make_crawl)]
        with LiveServer(arguments.quired, archives) as server:
            rates = measure(server, arguments.documents)
    print_figures(arguments, {"versions": versions, "rates": rates}, [
        f"Python {sys.version.split()[0]}, {versions}; best of {ROUNDS} rounds",
        *(f"{what:20}{rate:>14,.0f} /s{cpu_us:>12.4f} us of CPU each"
          for what, (rate, cpu_us) in rates.items())])


if __name__ == "__main__":
    main()
