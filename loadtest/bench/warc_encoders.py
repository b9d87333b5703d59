#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""WARC files stored as they are, of several encoders: an index of them stays valid.

    loadtest/bench/warc_encoders.py --build build/release [--text webdocs.raw]

Makes one .warc.gz of the same pages with each program that this machine has: warcio,
java.util.zip, wget (from a server on the loopback) and Python's gzip. Builds each with
`--inflate auto`, as one document, and with `--expand`; then reads the document back as a
whole, and every record of it by its offset and length in the file, in a random order.
"""
import functools
import http.server
import io
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, machine_load, make_parser
from live_server import LiveServer, make_documents, make_stubs
from markdown_table import markdown

SEED = 20261125
PIECE_BYTES = 1 << 16
# Reads lengths and bytes of records from its input; writes one member of each.
JAVA = """
import java.io.*;
import java.util.zip.*;
public class Pack {
  public static void main(String[] arguments) throws IOException {
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
    BufferedOutputStream out = new BufferedOutputStream(System.out);
    while (true) {
      int size;
      try { size = in.readInt(); } catch (EOFException end) { break; }
      byte[] record = new byte[size];
      in.readFully(record);
      GZIPOutputStream member = new GZIPOutputStream(out);
      member.write(record);
      member.finish();
    }
    out.flush();
  }
}
"""


def record_of(number, page):
    block = (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" %
             len(page)) + page
    head = (f"WARC/1.0\r\nWARC-Type: response\r\n"
            f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
            f"WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://localhost/{number}\r\n"
            f"Content-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(block)}\r\n\r\n")
    return head.encode() + block + b"\r\n\r\n"


def by_gzip(pages, _):
    def member(record):
        encoder = zlib.compressobj(9, wbits=31)
        return encoder.compress(record) + encoder.flush()
    return b"".join(member(record_of(*each)) for each in enumerate(pages))


def by_warcio(pages, _):
    # pylint: disable=import-outside-toplevel
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True)
    for number, page in enumerate(pages):
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        writer.write_record(writer.create_warc_record(
            f"http://localhost/{number}", "response", payload=io.BytesIO(page),
            http_headers=headers))
    return out.getvalue()


def by_java(pages, directory):
    (directory / "Pack.java").write_text(JAVA)
    records = [record_of(*each) for each in enumerate(pages)]
    return subprocess.run(
        ["java", directory / "Pack.java"], check=True, stdout=subprocess.PIPE,
        input=b"".join(len(record).to_bytes(4, "big") + record for record in records)).stdout


def by_wget(pages, directory):
    site = directory / "site"
    site.mkdir()
    for number, page in enumerate(pages):
        (site / f"{number}.html").write_bytes(page)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        urls = "\n".join(f"http://127.0.0.1:{server.server_port}/{number}.html"
                         for number in range(len(pages)))
        subprocess.run(
            ["wget", "--quiet", "--no-proxy", "--input-file=-", "--warc-file=crawl",
             "--no-warc-keep-log", "--output-document=/dev/null"],
            cwd=directory, input=urls.encode(), check=True)
        server.shutdown()
        thread.join()
    return (directory / "crawl.warc.gz").read_bytes()


def has_warcio():
    try:
        import warcio  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return False
    return True


# By name: how the file is made, and if this machine can.
ENCODERS = {
    "warcio": (by_warcio, has_warcio),
    "java.util.zip": (by_java, lambda: shutil.which("java") is not None),
    "wget": (by_wget, lambda: shutil.which("wget") is not None),
    "Python gzip": (by_gzip, lambda: True),
}


def member_ranges(file):
    """(offset, length, bytes of text) of each gzip member."""
    view = memoryview(file)
    start = 0
    while start < len(file):
        decoder = zlib.decompressobj(wbits=31)
        end = start
        size = 0
        while not decoder.eof:
            size += len(decoder.decompress(view[end:end + PIECE_BYTES]))
            end = min(end + PIECE_BYTES, len(file))
        end -= len(decoder.unused_data)
        yield start, end - start, size
        start = end


def draw_pages(arguments):
    if arguments.text is None:
        return [text for _, text in make_documents(arguments.pages, SEED, 200_000)]
    draw = random.Random(SEED)
    size_all = arguments.text.stat().st_size
    pages = []
    with open(arguments.text, "rb") as text:
        for _ in range(arguments.pages):
            size = min(draw.randrange(2_000, 200_000), size_all)
            text.seek(draw.randrange(size_all - size + 1))
            pages.append(text.read(size))
    return pages


def size_on_disk(archive):
    return sum(path.stat().st_size for path in archive.iterdir())


def read_back(quired, stubs, archive, file):
    """Compares all bytes of the file, and each of its members.

    Returns (every byte is equal, server milliseconds for a member's range in ascending order,
    bytes of text of the largest member).
    """
    members = list(member_ranges(file))
    pb = stubs.pb
    with LiveServer(quired, [f"bench={archive}"]) as server, server.channel() as channel:
        client = stubs.rpc.ArchiveStub(channel)
        name = pb.DocumentName(ordinal=0)
        random.Random(SEED).shuffle(members)
        costs = []
        is_equal = True
        for offset, length, _ in members:
            name.range.offset, name.range.size_bytes = offset, length
            before = server.cpu_seconds()
            answer = client.Read(pb.ReadRequest(archive="bench", document=name))
            costs.append(1000 * (server.cpu_seconds() - before))
            is_equal = is_equal and answer.data == file[offset:offset + length]
        name.ClearField("range")
        whole = b"".join(each.data for each in client.ReadStream(
            pb.ReadRequest(archive="bench", document=name)))
        return is_equal and whole == file, sorted(costs), sum(each[2] for each in members)


def measure(arguments, programs, stubs, pages, name, directory):
    directory.mkdir()
    (quired,) = programs
    file = ENCODERS[name][0](pages, directory)
    inputs = directory / "inputs"
    inputs.mkdir()
    (inputs / "crawl.warc.gz").write_bytes(file)
    archives = {}
    for form, options in (("kept", ["--inflate", "auto"]), ("expanded", ["--expand"])):
        archives[form] = directory / f"{form}.quire"
        build_archive(quired, archives[form], [inputs],
                      ["--dictionary-size", arguments.dictionary_size, *options])
    is_equal, costs, text_size = read_back(quired, stubs, archives["kept"], file)
    return {"encoder": name, "is_equal": is_equal, "records": len(costs),
            "text_bytes": text_size, "warc_gz_bytes": len(file),
            "kept_bytes": size_on_disk(archives["kept"]),
            "expanded_bytes": size_on_disk(archives["expanded"]),
            "range_ms_median": costs[len(costs) // 2],
            "range_ms_p99": costs[len(costs) * 99 // 100]}


def main():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--text", type=pathlib.Path, help="any large text (default: generated)")
    parser.add_argument("--pages", type=int, default=300, help="(default: %(default)s)")
    parser.add_argument("--dictionary-size", default="16MiB", help="(default: %(default)s)")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.text is not None and not arguments.text.is_file():
        parser.error(f"--text: no file {arguments.text}")
    programs = find_programs(arguments.build, "quired")
    pages = draw_pages(arguments)
    figures = []
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        stubs = make_stubs(directory)
        for number, (name, (_, is_there)) in enumerate(ENCODERS.items()):
            if not is_there():
                print(f"{name}: not on this machine", file=sys.stderr)
                continue
            figures.append(measure(arguments, programs, stubs, pages, name,
                                   directory / str(number)))
    print(machine_load(), file=sys.stderr)
    print_figures(arguments, figures, markdown(
        ["encoder", "bytes equal", "`.warc.gz`", "kept as it is", "`--expand`", "records",
         "text of a record", "ms of a record's range, median", "99th percentile"],
        [[each["encoder"], "yes" if each["is_equal"] else "NO", f"{each['warc_gz_bytes']:,}",
          f"{each['kept_bytes']:,}", f"{each['expanded_bytes']:,}", f"{each['records']:,}",
          f"{each['text_bytes'] // each['records']:,}", f"{each['range_ms_median']:.2f}",
          f"{each['range_ms_p99']:.2f}"]
         for each in figures]))
    if not all(each["is_equal"] for each in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
