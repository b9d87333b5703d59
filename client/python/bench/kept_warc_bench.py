#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures archives that keep .warc.gz files byte for byte, for each encoder.

A crawl of pages of a directory is written by warcio, by java.util.zip and by wget. Prints
the size of each .warc.gz, of an archive that keeps it (--inflate auto), and of one with its
records (--expand), and the server's time for the bytes of one record. The package, warcio,
java and wget must be available.

usage: kept_warc_bench.py QUIRED HTML_DIRECTORY
"""
import functools
import gzip
import http.server
import io
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer

from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import quire_archive

PAGES_SIZE_MAX = 30_000_000
DICTIONARY = "4MiB"
READS = 300
JAVA = """
import java.io.*;
import java.util.zip.GZIPOutputStream;
public class Members {
  public static void main(String[] a) throws Exception {
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    for (int size = in.readInt(); size > 0; size = in.readInt()) {
      ByteArrayOutputStream member = new ByteArrayOutputStream();
      try (OutputStream out = new GZIPOutputStream(member)) { out.write(in.readNBytes(size)); }
      member.writeTo(System.out);
    }
    System.out.flush();
  }
}
"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def choose_pages(directory):
    pages = sorted(pathlib.Path(directory).rglob("*.html"))
    random.Random(1).shuffle(pages)
    chosen, size = [], 0
    for page in pages:
        size += page.stat().st_size
        if size > PAGES_SIZE_MAX:
            break
        chosen.append(page.relative_to(directory))
    return sorted(chosen)


def write_warcio(directory, pages, path):
    with open(path, "wb") as file:
        writer = WARCWriter(file, gzip=True)
        for page in pages:
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")],
                                       protocol="HTTP/1.1")
            writer.write_record(writer.create_warc_record(
                f"http://example.org/{page}", "response", http_headers=headers,
                payload=io.BytesIO((directory / page).read_bytes())))


def records_of(path):
    """The uncompressed records of a .warc.gz."""
    data = path.read_bytes()
    offsets = []
    with open(path, "rb") as file:
        iterator = ArchiveIterator(file)
        for _ in iterator:
            offsets.append(iterator.get_record_offset())
    for begin, end in zip(offsets, [*offsets[1:], len(data)]):
        yield gzip.decompress(data[begin:end])


def write_java(source, path, work):
    program = work / "Members.java"
    program.write_text(JAVA)
    with open(path, "wb") as out, subprocess.Popen(
            ["java", program], stdin=subprocess.PIPE, stdout=out) as java:
        for record in records_of(source):
            java.stdin.write(struct.pack(">i", len(record)) + record)
        java.stdin.write(struct.pack(">i", 0))
        java.stdin.close()
    if java.returncode:
        raise RuntimeError("java failed")


def write_wget(directory, pages, path, work):
    handler = functools.partial(QuietHandler, directory=directory)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}"
        (work / "urls").write_text("".join(f"{root}/{page}\n" for page in pages))
        subprocess.run(["wget", "-q", "-i", work / "urls", "-O", work / "pages", "--no-proxy",
                        f"--warc-file={str(path)[:-len('.warc.gz')]}"], check=True, cwd=work)
        server.shutdown()
    (work / "pages").unlink()


def build(quired, out, source, *options):
    started = time.monotonic()
    subprocess.run([quired, "build", "--quiet", "-o", out, "--dictionary-size", DICTIONARY,
                    *options, source], check=True)
    return sum(file.stat().st_size for file in out.iterdir()), time.monotonic() - started


def cpu_seconds(server):
    # As clock_getcpuclockid(3) finds it.
    return time.clock_gettime((~server.process.pid << 3) | 2)


def measure(quired, name, path, work):
    kept, seconds = build(quired, work / f"{name}-kept.quire", path.parent, "--inflate", "auto")
    expanded, _ = build(quired, work / f"{name}-expanded.quire", path)
    data = path.read_bytes()
    with open(path, "rb") as file:
        iterator = ArchiveIterator(file)
        spans = [(iterator.get_record_offset(), iterator.get_record_length())
                 for record in iterator if record.content_stream().read() is not None]
    spans = random.Random(2).sample([span for span in spans if span[1]], READS)
    with LiveServer(quired, [work / f"{name}-kept.quire"]) as server, \
            quire_archive.connect(server.address) as client:
        archive = client[f"{name}-kept"]
        equal = archive.read(path.name) == data
        before = cpu_seconds(server)
        for span in spans:
            archive.read(path.name, range=span)
        spent = (cpu_seconds(server) - before) / READS
    size = sum(span[1] for span in spans) / READS
    print(f"| {name} | {len(data) / 1e6:.1f} | {kept / 1e6:.1f} | {expanded / 1e6:.1f} | "
          f"{'yes' if equal else 'NO'} | {size / 1e3:.0f} KB | {spent * 1e3:.2f} ms | "
          f"{seconds:.0f} s |", flush=True)


def main():
    quired, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    pages = choose_pages(directory)
    print(f"{len(pages)} pages, {sum((directory / p).stat().st_size for p in pages) / 1e6:.1f} MB; "
          f"dictionary {DICTIONARY}")
    print("| encoder | .warc.gz (MB) | kept | --expand | equal | a record | server CPU | build |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        paths = {encoder: work / encoder / "crawl.warc.gz" for encoder in ("warcio", "java", "wget")}
        for path in paths.values():
            path.parent.mkdir()
        write_warcio(directory, pages, paths["warcio"])
        write_java(paths["warcio"], paths["java"], work)
        write_wget(directory, pages, paths["wget"], work)
        for encoder, path in paths.items():
            measure(quired, encoder, path, work)


if __name__ == "__main__":
    main()
