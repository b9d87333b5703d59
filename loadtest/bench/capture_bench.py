#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the index of captures of a crawl, next to quire-web cdxj and the index servers of
pywb and OutbackCDX.

    loadtest/bench/capture_bench.py --build build/release

A generated crawl is built, each capture of another URL, and the same bytes with records of
type metadata, which are not indexed: the index costs the difference of processor times.
Look-ups are of URLs at random, one after the other unless stated; rates are per second of the servers'
processor time. pywb is that of the tests of replay, in BUILD/python-replay; its row says so if
it is not there. Maven Central does not have OutbackCDX: --outbackcdx names the jar that
`mvn package` makes of its sources (github.com/nla/outbackcdx, which needs Java 11).
"""
import base64
import collections
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import AS_IT_IS, find_programs, make_parser
from live_gateway import LiveGateway
from live_server import LiveServer, make_stubs, run_measured
from markdown_table import markdown
from reach_bench import install_package

SITES = 5000
START_SECONDS_MAX = 60
# OutbackCDX holds a request until it is stored.
CDX_LINES_PER_POST = 100_000
IN_FLIGHT = 32
# Of equal size: the two crawls differ in it alone.
INDEXED, NOT_INDEXED = b"response", b"metadata"


def url_of(number):
    return (f"http://www.site-{number % SITES}.example.com/section-{number % 97}/"
            f"page-{number}.html?lang=en&id={number * 7919}")


def write_crawls(indexed, not_indexed, count):
    draw = random.Random(2)
    with open(indexed, "wb") as file, open(not_indexed, "wb") as other:
        for number in range(count):
            body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>page %d</p>" % number
            rest = (b"WARC-Record-ID: <urn:uuid:%032x>\r\nWARC-Date: 2024-%02d-%02dT12:%02d:00Z\r\n"
                    b"WARC-Target-URI: %s\r\nWARC-Payload-Digest: sha1:%s\r\n"
                    b"Content-Type: application/http; msgtype=response\r\n"
                    b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (
                        number, number % 12 + 1, number % 28 + 1, number % 60,
                        url_of(number).encode(),
                        base64.b32encode(draw.randbytes(20)), len(body), body))
            for kind, out in ((INDEXED, file), (NOT_INDEXED, other)):
                out.write(b"WARC/1.1\r\nWARC-Type: " + kind + b"\r\n" + rest)


def measure_building(quired, directory, count, rounds):
    """Returns the processor seconds of the index, and what `quired inspect` prints of it."""
    paths = [directory / "web.warc", directory / "other.warc"]
    write_crawls(*paths, count)
    seconds = {path: [] for path in paths}
    for _ in range(rounds):
        for path, found in seconds.items():
            found.append(run_measured(
                [quired, "build", "--quiet", "--force", "--threads", "1", "--codec", "copy",
                 *AS_IT_IS, "-o", path.with_suffix(".quire"), path])[1])
    described = json.loads(subprocess.run(
        [quired, "inspect", "--json", directory / "web.quire"], check=True,
        stdout=subprocess.PIPE).stdout)["captures"]
    if described["count"] != count:
        raise RuntimeError(f"{described['count']} of {count} captures are indexed")
    indexed, not_indexed = (statistics.median(seconds[path]) for path in paths)
    return {"index_cpu_seconds": indexed - not_indexed, "build_cpu_seconds": indexed, **described}


def measure_lookups(ask, cpu_seconds, count, lookups):
    """Returns look-ups per second of processor time; `ask` returns the URL that was found."""
    draw = random.Random(1)
    before = cpu_seconds()
    for _ in range(lookups):
        url = url_of(draw.randrange(count))
        if (found := ask(url)) != url:
            raise RuntimeError(f"asked for {url}, found {found}")
    return lookups / (cpu_seconds() - before)


def measure_server(server, directory, count, lookups):
    """Returns the rate of single look-ups, and of IN_FLIGHT at a time."""
    stubs = make_stubs(directory)
    with server.channel() as channel:
        client = stubs.rpc.ArchiveStub(channel)

        def begin(url):
            return client.ListCaptures.future(stubs.pb.ListCapturesRequest(
                archive="web", url=url.encode()))

        def ask(url):
            return begin(url).result().captures[0].url.decode()
        single = measure_lookups(ask, server.cpu_seconds, count, lookups)
        waiting = collections.deque()

        def ask_many(url):
            waiting.append((url, begin(url)))
            if len(waiting) == IN_FLIGHT:
                asked, call = waiting.popleft()
                if (found := call.result().captures[0].url.decode()) != asked:
                    raise RuntimeError(f"asked for {asked}, found {found}")
            return url
        return single, measure_lookups(ask_many, server.cpu_seconds, count, lookups)


def url_in(line):
    return json.loads(line)["url"]


def measure_gateway(server, quire_http, count, lookups):
    with LiveGateway(quire_http, server.address) as gateway, gateway.connect() as connection:
        def ask(url):
            return url_in(connection.ask("/v1/web/cdx?output=json&url=" +
                                         urllib.parse.quote(url, safe="")).body)
        return measure_lookups(ask, lambda: server.cpu_seconds() + gateway.cpu_seconds(), count,
                               lookups)


@contextlib.contextmanager
def index_server(name, directory, command, environment=None):
    """Starts an index server of others; {port} in `command` is a free port.

    Yields (connection, function that returns the processor seconds of the server)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = directory / f"{name}.log"
    with open(path, "wb") as log, subprocess.Popen(
            [str(word).format(port=port) for word in command], cwd=directory, stdout=log, stderr=log,
            env={**os.environ, **(environment or {})}) as process:
        try:
            end = time.monotonic() + START_SECONDS_MAX
            while True:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    connection.connect()
                    break
                except OSError:
                    if time.monotonic() > end or process.poll() is not None:
                        raise RuntimeError(
                            f"{name} does not answer: {path.read_text()[-2000:]}") from None
                    time.sleep(0.1)
            # As clock_getcpuclockid(3) finds it.
            yield connection, lambda: time.clock_gettime((~process.pid << 3) | 2)
        finally:
            process.terminate()


def ask_http(connection, method, target, body=None):
    connection.request(method, target, body)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{method} {target}: status {answer.status}: {text[:1000]!r}")
    return text


def measure_pywb(modules, directory, index, count, lookups):
    (directory / "config.yaml").write_text(json.dumps(
        {"collections": {"web": {"index_paths": str(index), "archive_paths": str(directory)}}}))
    with index_server("pywb", directory, [
            "/usr/bin/python3", "-c", "from pywb.apps.cli import warcserver; warcserver()", "-b",
            "127.0.0.1", "-p", "{port}"], {"PYTHONPATH": str(modules)}) as (connection, cpu_seconds):
        def ask(url):
            return url_in(ask_http(connection, "GET", "/web/index?output=json&url=" +
                                   urllib.parse.quote(url, safe="")))
        return measure_lookups(ask, cpu_seconds, count, lookups)


def cdx_lines(index):
    """Yields the lines of a CDXJ as CDX lines of 11 fields."""
    with open(index, "rb") as lines:
        for line in lines:
            key, when, fields = line.split(b" ", 2)
            found = json.loads(fields)
            yield " ".join([key.decode(), when.decode(), found["url"], found.get("mime", "-"),
                            found.get("status", "-"), found.get("digest", "-"), "-", "-",
                            found["length"], found["offset"], found["filename"]]) + "\n"


def measure_outbackcdx(jar, directory, index, count, lookups):
    """Returns look-ups per second of processor time, after some that make the JVM compile."""
    data = directory / "outbackcdx"
    data.mkdir()
    with index_server("OutbackCDX", directory, [
            "java", "-jar", jar, "-b", "127.0.0.1", "-p", "{port}", "-d", data]) as (
                connection, cpu_seconds):
        lines = cdx_lines(index)
        while part := "".join(itertools.islice(lines, CDX_LINES_PER_POST)):
            ask_http(connection, "POST", "/web", part.encode())

        def ask(url):
            return ask_http(connection, "GET", "/web?url=" +
                            urllib.parse.quote(url, safe="")).split()[2].decode()
        measure_lookups(ask, cpu_seconds, count, lookups)
        return measure_lookups(ask, cpu_seconds, count, lookups)


def measure_cdxj(server, directory):
    """Returns the seconds of quire-web cdxj; its index is web.cdxj."""
    package = install_package(directory)
    return run_measured(["env", f"PYTHONPATH={package['PYTHONPATH']}", "/usr/bin/python3", "-m",
                         "quire_archive.web", "cdxj", "web", "-o", directory / "web.cdxj",
                         "--server", server.address])[0]


def rows_of(figures):
    building, rates = figures["building"], figures["lookups"]
    count = building["count"]

    def peer(name, missing):
        return missing if rates[name] is None else f"{rates[name]:,.0f} per second of CPU"
    return [
        [f"{count:,} captures, their index in a build on one thread",
         f"{building['index_cpu_seconds']:.1f} of {building['build_cpu_seconds']:.1f} s of CPU; "
         f"{building['stored_size_bytes'] / count:.1f} bytes, in memory "
         f"{8 * building['memory_bytes'] / count:.3f} bits per capture"],
        ["`quire-web cdxj` of the same", f"{figures['cdxj_seconds']:.1f} s"],
        [f"look-ups by URL, gRPC, one; {IN_FLIGHT} in flight",
         f"{rates['grpc']:,.0f}; {rates['grpc_in_flight']:,.0f} per second of CPU"],
        ["look-ups by URL, `/v1/A/cdx`, gateway and server",
         f"{rates['http']:,.0f} per second of CPU"],
        ["look-ups by URL, index server of pywb", peer("pywb", "pywb is not installed")],
        ["look-ups by URL, OutbackCDX", peer("outbackcdx", "no --outbackcdx")]]


def main():
    parser = make_parser(__doc__, "quired", "quire-http")
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--lookups", type=int, default=20_000)
    parser.add_argument("--smoke", action="store_true", help="few captures: for tests")
    parser.add_argument("--outbackcdx", metavar="JAR", type=pathlib.Path, help="OutbackCDX")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.outbackcdx and not arguments.outbackcdx.is_file():
        parser.error(f"--outbackcdx: no file {arguments.outbackcdx}")
    count, lookups, rounds = (3000, 200, 1) if arguments.smoke else (
        arguments.captures, arguments.lookups, 3)
    quired, quire_http = find_programs(arguments.build, "quired", "quire-http")
    modules = pathlib.Path(arguments.build).resolve() / "python-replay"
    with tempfile.TemporaryDirectory(prefix="quire-captures-", dir="/var/tmp") as scratch:
        directory = pathlib.Path(scratch)
        figures = {"building": measure_building(quired, directory, count, rounds)}
        with LiveServer(quired, [directory / "web.quire"]) as server:
            figures["cdxj_seconds"] = measure_cdxj(server, directory)
            single, in_flight = measure_server(server, directory, count, lookups)
            figures["lookups"] = {
                "grpc": single, "grpc_in_flight": in_flight,
                "http": measure_gateway(server, quire_http, count, lookups)}
        figures["lookups"]["pywb"] = measure_pywb(
            modules, directory, directory / "web.cdxj", count, min(lookups, 2000)) \
            if modules.is_dir() else None
        figures["lookups"]["outbackcdx"] = measure_outbackcdx(
            arguments.outbackcdx.resolve(), directory, directory / "web.cdxj", count, lookups) \
            if arguments.outbackcdx else None
    print_figures(arguments, figures, markdown(["what", "figure"], rows_of(figures)))


if __name__ == "__main__":
    main()
