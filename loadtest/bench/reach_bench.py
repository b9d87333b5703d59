#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to reach an archive by HTTP and from Python; one table.

    loadtest/bench/reach_bench.py --build build/release

Runs http_bench.py and client/python/bench/python_bench.py, and reads single records of a
.warc.gz that is stored as it is. The modules of Python are those of the tests of the package
(deploy/bootstrap.sh). With --smoke a moment of each.
"""
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, make_parser
from live_gateway import LiveGateway
from live_server import LiveServer
from markdown_table import markdown

PAGE_SIZE = 100_000
PYTHON_ROWS = {
    "get_many": "Python, `get_many` of documents of 2 KB",
    "read": "Python, single reads of the same",
    "cat_ranges": "fsspec, `cat_ranges` of 1 KB",
    "scan_stored": "Python, scan in stored blocks",
    "scan_identity": "Python, scan in identity",
    "list": "Python, listing",
    "cdxj": "`quire-web cdxj`, captures",
    "wacz": "`quire-web wacz`, captures",
}


def rate_text(name, rate, cpu_us):
    """A rate, and the CPU time of the client, which other programs disturb less."""
    if name.startswith("scan"):
        return f"{rate / 1e6:,.0f} MB/s, {1 / cpu_us:,.0f} MB per second of CPU"
    return f"{rate:,.0f}/s, {cpu_us:.1f} µs of CPU each"


def measure_http(arguments):
    options = ["--requests", "400", "--slow-readers", "100", "--rounds", "1", "--documents",
               "100"] if arguments.smoke else ["--readers", "1"]
    return json.loads(subprocess.run(
        [sys.executable, ROOT / "loadtest/bench/http_bench.py", "--build", arguments.build,
         "--json", "-", *options], check=True, stdout=subprocess.PIPE).stdout)


def install_package(directory):
    """Builds and installs the package as users do; returns the environment of programs with it."""
    subprocess.run([ROOT / "client/python/build_wheel.sh", directory], check=True,
                   stdout=subprocess.DEVNULL)
    (wheel,) = pathlib.Path(directory).glob("quire_archive-*.whl")
    subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps",
                    "--no-index", "--disable-pip-version-check", "--root-user-action=ignore",
                    "--target", f"{directory}/site", wheel], check=True)
    return {**os.environ, "PYTHONPATH": f"{directory}/site:{ROOT / 'build' / 'python'}"}


def measure_python(arguments, quired, directory):
    """Rates of the package."""
    options = ["--documents", "500"] if arguments.smoke else []
    return json.loads(subprocess.run(
        ["/usr/bin/python3", ROOT / "client/python/bench/python_bench.py", "--json", "-",
         *options, quired], check=True, stdout=subprocess.PIPE,
        env=install_package(directory)).stdout)


def measure_records(arguments, quired, quire_http, directory):
    """Returns milliseconds (median of a request, CPU time of server and gateway each) of the
    range of one record, and percent of the .warc.gz that the archive takes."""
    draw = random.Random(6)
    words = [draw.randbytes(4).hex().encode() for _ in range(3000)]
    crawl = pathlib.Path(directory, "crawl")
    crawl.mkdir()
    spans = []
    with open(crawl / "crawl.warc.gz", "wb") as file:
        for number in range(20 if arguments.smoke else 300):
            body = b"HTTP/1.1 200 OK\r\n\r\n" + b" ".join(draw.choices(words, k=PAGE_SIZE // 9))
            record = (b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:%d>\r\n"
                      b"WARC-Date: 2021-01-01T00:00:00Z\r\nWARC-Target-URI: http://a/%d\r\n"
                      b"Content-Type: application/http\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
                      % (number, number, len(body), body))
            member = gzip.compress(record, mtime=0)
            spans.append((file.tell(), member))
            file.write(member)
    build_archive(quired, f"{directory}/kept.quire", [crawl], ["--inflate", "auto"])
    stored = sum(path.stat().st_size for path in pathlib.Path(directory, "kept.quire").iterdir())
    with LiveServer(quired, [f"{directory}/kept.quire"]) as server, \
            LiveGateway(quire_http, server.address) as gateway, gateway.connect() as connection:
        times, before = [], server.cpu_seconds()
        for first, member in draw.sample(spans, len(spans)):
            started = time.perf_counter()
            reply = connection.ask("/v1/kept/doc/crawl.warc.gz",
                                   Range=f"bytes={first}-{first + len(member) - 1}")
            times.append(time.perf_counter() - started)
            if reply.body != member:
                raise RuntimeError(f"not the bytes of the file: {reply}")
        spent = (server.cpu_seconds() - before) / len(spans)
    return {"ms": sorted(times)[len(times) // 2] * 1e3, "server_cpu_ms": spent * 1e3,
            "record_kb": len(spans[0][1]) / 1e3,
            "stored_percent": 100 * stored / sum(len(member) for _, member in spans)}


def main():
    parser = make_parser(__doc__, "quired", "quire-http")
    parser.add_argument("--smoke", action="store_true", help="a moment of each, as a test")
    add_json_option(parser)
    arguments = parser.parse_args()
    quired, quire_http = find_programs(arguments.build, "quired", "quire-http")
    with tempfile.TemporaryDirectory() as directory:
        figures = {"http": measure_http(arguments),
                   "records": measure_records(arguments, quired, quire_http, directory),
                   "python": measure_python(arguments, quired, directory)}
    (ranges,) = figures["http"]["ranges"]
    slow, records, rates = figures["http"]["slow"], figures["records"], figures["python"]["rates"]
    rows = [
        [f"gateway, {ranges['range']} ranges, one after the other",
         f"{ranges['cpu_us']:.0f} µs of its CPU per range, {ranges['requests_per_second']:,.0f}/s"],
        [f"gateway, {slow['slow_readers']:,} slow readers at the same time",
         f"{slow['resident_peak_bytes'] / 2**20:.0f} MiB resident, --memory 128MiB"],
        [f"gateway, one record ({records['record_kb']:.0f} KB, {PAGE_SIZE // 1000} KB inflated) of "
         "a `.warc.gz` stored as it is",
         f"{records['ms']:.1f} ms, {records['server_cpu_ms']:.1f} ms of the server's CPU"],
        *([text, rate_text(name, *rates[name])] for name, text in PYTHON_ROWS.items())]
    print_figures(arguments, figures, markdown(["what", "figure"], rows))


if __name__ == "__main__":
    main()
