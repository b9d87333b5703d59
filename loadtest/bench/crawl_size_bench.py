#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the size of crawls as files of their crawler, in Quire, and in other formats.

    loadtest/bench/crawl_size_bench.py --build build/release --pages /data/plain/handbook \\
        --modules /data/modules

wget crawls a site three times, over loopback, from the HTML files in --pages. Between two crawls
a tenth of the pages gets another paragraph, and some pages are new or gone. Ratios to be kept:
a .warc.zst of `quire export` takes at most 1.15 of the archive of the same records, and an archive
that grew, after `compact --all --reorder dedup`, 1.01 of one build of all files.

The other .warc.zst is made with the program zstd: a dictionary that it trains, and a frame for
each record. A ZIM file has bodies only, without headers and requests; it is measured with
--modules, a directory with libzim (`pip install --target DIR -r python_peers.txt`). Exports and
the other .warc.zst are decoded and compared with the crawl.
"""
import contextlib
import dataclasses
import functools
import hashlib
import http.server
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, machine_load, make_parser
from disk_runs import directory_bytes
from live_server import make_documents, parse_size, run_measured
from make_corpus import documents_of
from markdown_table import markdown
from warc_encoders import member_ranges

PYTHON_PEERS = pathlib.Path(__file__).with_name("python_peers.py")
HOST = "docs.example.test"
CRAWL_COUNT = 3
# Of 40 pages.
EDITED, COMING_OR_GOING = 4, 1
DICTIONARY_FRAME_MAGIC = 0x184D2A5D
ZSTD = ("zstd", "--quiet", "--force", "-T1")
PEER_LEVEL = "-19"
PEER_DICTIONARY_BYTES = 1 << 20
DEDUP = ("--reorder", "dedup")
EXPORT_RATIO_MAX, GROWN_RATIO_MAX = 1.15, 1.01


@dataclasses.dataclass
class Crawl:
    path: pathlib.Path
    # Of wget.
    cpu_seconds: float
    # Text of each gzip member.
    records: list
    bodies: list

    def text(self):
        return b"".join(self.records)


def choose_pages(tree, size_bytes_max):
    """Returns {path: bytes} of HTML files, evenly spread, of about `size_bytes_max`."""
    pages = [(name, text) for name, text in documents_of(tree) if name.endswith((".html", ".htm"))]
    share = min(1, size_bytes_max / max(1, sum(len(text) for _, text in pages)))
    return {name: text for number, (name, text) in enumerate(pages)
            if int((number + 1) * share) > int(number * share)}


def edited(text, draw):
    """Returns the text with another paragraph, of its own words, after a random one."""
    words = text.split()
    added = b"<p>" + b" ".join(draw.choices(words, k=60)).replace(b"<", b"&lt;") + b"</p>"
    offset = text.find(b"</p>", draw.randrange(max(1, len(text))))
    end = len(text) if offset < 0 else offset + len(b"</p>")
    return text[:end] + added + text[end:]


def states_of(pages):
    """Returns the site at the time of each crawl: {path: bytes}."""
    draw = random.Random(1)
    names = sorted(pages)
    site, states = dict(pages), []
    late = set(draw.sample(names, max(1, len(names) * COMING_OR_GOING * (CRAWL_COUNT - 1) // 40)))
    for number in range(CRAWL_COUNT):
        if number:
            for name in draw.sample(names, max(1, len(names) * EDITED // 40)):
                site[name] = edited(site[name], draw)
            # A page that was crawled goes, and one that was not comes.
            late = set(draw.sample(sorted(late), len(late) // 2)) | set(
                draw.sample(sorted(set(names) - late), len(late) - len(late) // 2))
        states.append({name: text for name, text in site.items() if name not in late})
    return states


class Site(http.server.BaseHTTPRequestHandler):
    """A proxy that is HOST."""
    protocol_version = "HTTP/1.1"
    # Buffered: head and body in one segment.
    wbufsize = -1

    def __init__(self, pages, *rest):
        self.pages = pages
        super().__init__(*rest)

    def do_GET(self):  # pylint: disable=invalid-name
        body = self.pages.get(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path[1:]))
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def served(pages):
    """Yields the URL of a proxy through which the pages are read."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, pages)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def body_of(record):
    """Returns the body of the response in a record; None if it is of another type."""
    head, _, block = record.partition(b"\r\n\r\n")
    if b"\r\nWARC-Type: response\r\n" not in head:
        return None
    return block.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n\r\n")


def crawl(pages, directory, name):
    urls = directory / f"{name}.urls"
    urls.write_text("".join(f"http://{HOST}/{urllib.parse.quote(page)}\n" for page in sorted(pages)))
    with served(pages) as proxy:
        cpu = run_measured(
            ["wget", "--no-config", "--quiet", "-e", f"http_proxy={proxy}", f"--input-file={urls}",
             f"--warc-file={directory / name}", f"--warc-tempdir={directory}",
             "--no-warc-keep-log", "--output-document=/dev/null"])[1]
    path = directory / f"{name}.warc.gz"
    text = subprocess.run(["gzip", "-dc", path], check=True, stdout=subprocess.PIPE).stdout
    records, offset = [], 0
    for _, _, size in member_ranges(path.read_bytes()):
        records.append(text[offset:offset + size])
        offset += size
    bodies = list(filter(None, map(body_of, records)))
    if sorted(bodies) != sorted(pages.values()):
        raise RuntimeError(f"{path}: {len(bodies)} pages, not the {len(pages)} of the site")
    return Crawl(path, cpu, records, bodies)


def expect_equal(text, expected, name):
    if hashlib.sha256(text).digest() != hashlib.sha256(expected).digest():
        raise RuntimeError(f"{name}: {len(text):,} bytes, not the {len(expected):,} of the crawl")


def decode(path):
    """Returns the text of a .warc.zst, as the program zstd decodes it."""
    file = path.read_bytes()
    magic, size = struct.unpack_from("<II", file)
    if magic != DICTIONARY_FRAME_MAGIC:
        raise RuntimeError(f"{path}: no dictionary at the begin")
    dictionary = path.with_suffix(".dictionary")
    dictionary.write_bytes(subprocess.run([*ZSTD, "-dc"], input=file[8:8 + size], check=True,
                                          stdout=subprocess.PIPE).stdout)
    return subprocess.run([*ZSTD, "-dc", "-D", dictionary, path], check=True,
                          stdout=subprocess.PIPE).stdout


class Bench:
    """Sizes are {"bytes": ..., "cpu_seconds": ...}."""

    def __init__(self, programs, crawls, directory):
        self.quired, self.quire = programs
        self.crawls = crawls
        self.directory = directory
        self.text = b"".join(each.text() for each in crawls)

    def build(self, name, crawls, *options):
        return run_measured([self.quired, "build", "--quiet", *options, "-o",
                             self.directory / f"{name}.quire", *(each.path for each in crawls)])[1]

    def size_of(self, name, cpu_seconds):
        return {"bytes": directory_bytes(self.directory / f"{name}.quire"),
                "cpu_seconds": cpu_seconds}

    def built(self, name, crawls, *options):
        return self.size_of(name, self.build(name, crawls, *options))

    def grown(self):
        """Builds the first crawl and appends the others. Returns sizes: before and after
        compact, and of one build of all with the dictionary of the first."""
        grown = self.directory / "grown.quire"
        cpu = self.build("grown", self.crawls[:1], *DEDUP)
        like = self.built("like", self.crawls, *DEDUP, "--like", grown)
        for each in self.crawls[1:]:
            cpu += run_measured([self.quired, "append", "--quiet", grown, each.path])[1]
        before = self.size_of("grown", cpu)
        cpu = run_measured([self.quired, "compact", "--quiet", "--all", *DEDUP, grown])[1]
        return before, self.size_of("grown", cpu), like

    def exported(self, name, *options, text=None):
        path = self.directory / f"{name}.warc.zst"
        cpu = run_measured(["env", f"QUIRED={self.quired}", self.quire, "--archive",
                            self.directory / f"{name}.quire", "export", "--warc", path,
                            *options])[1]
        found = decode(path)
        if text is not None:
            expect_equal(found, text, path.name)
        return {"bytes": path.stat().st_size, "cpu_seconds": cpu}

    def by_zstd(self, name, crawls):
        """Returns the size of the .warc.zst that the program zstd makes: its trained
        dictionary in a skippable frame, and a frame for each record."""
        records = self.directory / f"{name}-records"
        records.mkdir()
        paths = [records / f"{number:08}" for number in range(sum(len(each.records)
                                                                  for each in crawls))]
        for path, record in zip(paths, (record for each in crawls for record in each.records)):
            path.write_bytes(record)
        names = self.directory / f"{name}-names"
        names.write_text("".join(f"{path}\n" for path in paths))
        dictionary, frames = self.directory / f"{name}-dictionary", self.directory / f"{name}-frames"
        cpu = run_measured([*ZSTD, "--train", f"--maxdict={PEER_DICTIONARY_BYTES}", "--filelist",
                            names, "-o", dictionary])[1]
        cpu += run_measured([*ZSTD, PEER_LEVEL, "-D", dictionary, "-c", "--filelist", names],
                            frames)[1]
        packed = self.directory / f"{name}-packed"
        cpu += run_measured([*ZSTD, PEER_LEVEL, "-c", dictionary], packed)[1]
        path = self.directory / f"{name}-by-zstd.warc.zst"
        path.write_bytes(struct.pack("<II", DICTIONARY_FRAME_MAGIC, packed.stat().st_size)
                         + packed.read_bytes() + frames.read_bytes())
        expect_equal(decode(path), b"".join(each.text() for each in crawls), path.name)
        return {"bytes": path.stat().st_size, "cpu_seconds": cpu}

    def whole_by_zstd(self):
        text = self.directory / "crawls.warc"
        text.write_bytes(self.text)
        out = self.directory / "crawls.zst"
        cpu = run_measured([*ZSTD, "-19", "--long=27", "-c", text], out)[1]
        return {"bytes": out.stat().st_size, "cpu_seconds": cpu}

    def zim(self, modules):
        """Returns the size of a ZIM file of the bodies of all crawls."""
        text, index = self.directory / "bodies.raw", self.directory / "bodies.tsv"
        offset = 0
        with open(text, "wb") as out, open(index, "w", encoding="utf-8") as rows:
            for number, body in enumerate(body for each in self.crawls for body in each.bodies):
                out.write(body)
                rows.write(f"{offset}\t{len(body)}\t{number}\n")
                offset += len(body)
        printed = run_measured(["env", f"PYTHONPATH={modules.resolve()}", "/usr/bin/python3",
                                PYTHON_PEERS, "zim", text, index, self.directory / "bodies.zim",
                                "0.01"])[3]
        found = json.loads(printed.splitlines()[-1])
        return {"bytes": found["stored_bytes"], "cpu_seconds": found["build_cpu_seconds"],
                "text_bytes": offset}

    def run(self, modules):
        first, crawls = self.crawls[:1], self.crawls
        sizes = {
            "crawled": {"bytes": sum(each.path.stat().st_size for each in crawls),
                        "cpu_seconds": sum(each.cpu_seconds for each in crawls)},
            "kept": self.built("kept", crawls),
            "records": self.built("records", crawls, "--records-only"),
            "dedup": self.built("dedup", crawls, *DEDUP)}
        sizes["grown"], sizes["compacted"], sizes["like"] = self.grown()
        sizes["export"] = self.exported("records", text=self.text)
        sizes["export_revisits"] = self.exported("records", "--revisit-duplicates")
        sizes["zstd_records"] = self.by_zstd("all", crawls)
        sizes["zim"] = self.zim(modules) if modules else None
        sizes["zstd_whole"] = self.whole_by_zstd()
        sizes["first_records"] = self.built("first", first, "--records-only")
        sizes["first_export"] = self.exported("first", text=first[0].text())
        sizes["first_zstd_records"] = self.by_zstd("first", first)
        return {"text_bytes": len(self.text), "first_text_bytes": len(first[0].text()),
                "records": sum(len(each.records) for each in crawls),
                "pages": [len(each.bodies) for each in crawls], "sizes": sizes}


def rows_of(figures):
    sizes, text_bytes = figures["sizes"], figures["text_bytes"]
    first_bytes = figures["first_text_bytes"]

    def ratio(name, than):
        return f"{sizes[name]['bytes'] / sizes[than]['bytes']:.3f}"

    def cell(name, text_bytes=text_bytes, than="", ratio_max=None):
        size = sizes[name]
        if size is None:
            return "libzim is not installed"
        shown = f"{size['bytes']:,} bytes, {100 * size['bytes'] / text_bytes:.2f} %"
        if than:
            shown += f", {ratio(name, than)} of the archive"
            shown += f" (at most {ratio_max})" if ratio_max else ""
        return f"{shown}; {size['cpu_seconds']:.1f} s of CPU"

    one, all_of = "one crawl", f"{CRAWL_COUNT} crawls"
    return [
        [f"{all_of} of a site by wget, {figures['records']:,} records of {text_bytes:,} bytes: "
         "`.warc.gz`, and wget's time", cell("crawled")],
        [f"{all_of}: `quired build`, files kept byte for byte", cell("kept")],
        [f"{all_of}: `quired build --records-only`", cell("records")],
        [f"{all_of}: `quired build --reorder dedup`, files kept", cell("dedup")],
        ["one crawl built, the others appended, files kept", cell("grown")],
        ["then `quired compact --all --reorder dedup`; ratio to the build with `--reorder dedup`, and "
         "to one with the first crawl's dictionary (`--like`)",
         f"{cell('compacted')}; {ratio('compacted', 'dedup')}, {ratio('compacted', 'like')} "
         f"(at most {GROWN_RATIO_MAX})"],
        [f"{all_of}: `quire export`, `.warc.zst`, of the archive of records",
         cell("export", than="records")],
        [f"{all_of}: the same with `--revisit-duplicates`", cell("export_revisits", than="records")],
        [f"{all_of}: `.warc.zst` by zstd {PEER_LEVEL} with a trained dictionary of 1 MiB",
         cell("zstd_records")],
        [f"{all_of}: `zstd -19 --long=27`, one stream", cell("zstd_whole")],
        [f"{all_of}: ZIM, bodies alone" + (
            f" ({sizes['zim']['text_bytes']:,} bytes)" if sizes["zim"] else ""), cell("zim")],
        [f"{one}, {first_bytes:,} bytes: `quired build --records-only`",
         cell("first_records", first_bytes)],
        [f"{one}: `quire export`, `.warc.zst`",
         cell("first_export", first_bytes, "first_records", EXPORT_RATIO_MAX)],
        [f"{one}: `.warc.zst` by zstd {PEER_LEVEL} with a trained dictionary of 1 MiB",
         cell("first_zstd_records", first_bytes)]]


def parse_arguments():
    parser = make_parser(__doc__, "quired", "quire")
    parser.add_argument("--pages", metavar="DIR", type=pathlib.Path,
                        help="a tree of HTML files: the site")
    parser.add_argument("--crawl-size", metavar="SIZE", default="24MiB",
                        help="pages of a crawl, taken evenly from --pages (default: %(default)s)")
    parser.add_argument("--modules", metavar="DIR", type=pathlib.Path,
                        help="Python modules of the peers")
    parser.add_argument("--smoke", action="store_true", help="a few generated pages: for tests")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.pages and not arguments.smoke:
        parser.error("--pages is required, unless --smoke is given")
    if arguments.pages and not arguments.pages.is_dir():
        parser.error(f"--pages: no directory {arguments.pages}")
    return arguments


def main():
    arguments = parse_arguments()
    programs = find_programs(arguments.build, "quired", "quire")
    pages = dict(make_documents(40, 1, 20_000)) if arguments.smoke else choose_pages(
        arguments.pages, parse_size(arguments.crawl_size))
    if not pages:
        sys.exit(f"crawl_size_bench.py: no .html in {arguments.pages}")
    with tempfile.TemporaryDirectory(prefix="quire-sizes-", dir="/var/tmp") as scratch:
        directory = pathlib.Path(scratch)
        crawls = [crawl(state, directory, f"crawl-{number}")
                  for number, state in enumerate(states_of(pages))]
        figures = Bench(programs, crawls, directory).run(arguments.modules)
    print(machine_load(), file=sys.stderr)
    print_figures(arguments, figures, markdown(["what", "figure"], rows_of(figures)))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"crawl_size_bench.py: {error}")
