#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures answers per second and bytes on the wire in each wire encoding, over links
of several speeds, for single documents read at random. Every answer is compared with
the source.

    loadtest/bench/wire_bench.py --corpus web=/data/webdocs --lines l_comment=/data/l_comment

A corpus is NAME=STEM, where the archive is built from STEM.tar, STEM.raw
the same documents concatenated, STEM.tsv offset, size and id of each. A text of
--lines NAME=FILE is converted to one first, each line a document. Archives are
built in --directory and reused if they exist.

Links slower than loopback are network namespaces joined by a veth pair with
`tc tbf` at both ends, so this needs root and iproute2; `--links loopback` needs
neither, but has no figure for bytes at the interface. All links are removed
at the end.
"""
import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
import wire_links
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, make_parser
from markdown_table import markdown
from live_server import LiveServer, make_documents, write_corpus

PROGRAMS = ("quired", "quire-loadtest")
ENCODINGS = ("identity", "fsst", "stored")
COLUMNS = ("corpus", "link", "encoding", "answers/s", "text MB/s", "data bytes an answer",
           "message bytes an answer", "bytes at the interface an answer", "p50 ms", "p99 ms")


def parse_pair(text):
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PATH")
    return name, value


def parse_list(allowed):
    def parse(text):
        words = text.split(",")
        unknown = [word for word in words if word not in allowed]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"no {unknown[0]}; there are {', '.join(allowed)}")
        return words
    return parse


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--corpus", type=parse_pair, action="append", default=[],
                        metavar="NAME=STEM")
    parser.add_argument("--lines", type=parse_pair, action="append", default=[],
                        metavar="NAME=FILE", help="a text whose lines are documents")
    parser.add_argument("--lines-max", type=int, default=200_000, help="of a text")
    parser.add_argument("--directory", type=pathlib.Path,
                        help="where archives are built (default: a temporary directory)")
    parser.add_argument("--build-options", default="", help="passed on to quired build")
    parser.add_argument("--serve-options", default="--memory 1GiB", help="to quired serve")
    parser.add_argument("--links", type=parse_list(tuple(wire_links.LINKS)),
                        default=list(wire_links.LINKS))
    parser.add_argument("--encodings", type=parse_list(ENCODINGS), default=list(ENCODINGS))
    parser.add_argument("--seconds", type=int, default=6, help="of each measurement")
    parser.add_argument("--requests", type=int, default=1_000_000,
                        help="of each measurement, at most")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=1, help="the fastest counts")
    add_json_option(parser)
    parser.add_argument("--smoke", action="store_true",
                        help="a small text over loopback, in a moment: does it all work?")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_lines_corpus(text_path, stem, lines_max):
    """Makes each line, without its end, a document line/NUMBER; skips empty ones."""
    with open(text_path, "rb") as text, open(f"{stem}.raw", "wb") as raw, \
            open(f"{stem}.tsv", "w") as index, \
            tarfile.open(f"{stem}.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        offset = count = 0
        for line in text:
            line = line.rstrip(b"\n")
            if not line:
                continue
            if count == lines_max:
                break
            info = tarfile.TarInfo(f"line/{count:06}")
            info.size = len(line)
            tar.addfile(info, io.BytesIO(line))
            raw.write(line)
            index.write(f"{offset}\t{len(line)}\t{info.name}\n")
            offset += len(line)
            count += 1
    say(f"{text_path}: {count:,} lines, {offset:,} bytes")


class Bench:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.quired, self.loadtest = find_programs(arguments.build, *PROGRAMS)
        # Name, archive, stem.
        self.corpora = []
        self.rows = []

    def prepare(self):
        arguments = self.arguments
        stems = list(arguments.corpus)
        for name, path in arguments.lines:
            stem = f"{self.directory}/{name}"
            if not pathlib.Path(f"{stem}.tsv").is_file():
                write_lines_corpus(path, stem, arguments.lines_max)
            stems.append((name, stem))
        if arguments.smoke:
            write_corpus(make_documents(100, seed=5), f"{self.directory}/smoke")
            stems.append(("smoke", f"{self.directory}/smoke"))
        for name, stem in stems:
            archive = self.directory / f"{name}.quire"
            if not archive.exists():
                say(f"building {archive} of {stem}.tar")
                build_archive(self.quired, archive, [f"{stem}.tar"],
                              arguments.build_options.split())
            self.corpora.append((name, archive, stem))

    def load(self, server, link, stem, encoding):
        """Returns the report of quire-loadtest, with `interface_bytes` if there is a link."""
        arguments = self.arguments
        before = link.received_bytes() if link else 0
        result = subprocess.run(
            [*(link.command("client") if link else ()), str(self.loadtest), "bench",
             "--server", server.address, "--source", f"{stem}.raw", "--index", f"{stem}.tsv",
             "--what", "documents", "--encoding", encoding, "--in-flight",
             str(arguments.in_flight), "--requests", str(arguments.requests), "--duration",
             str(arguments.seconds), "--json"],
            stdout=subprocess.PIPE, text=True, check=False, timeout=arguments.seconds + 120)
        if result.returncode != 0:
            raise RuntimeError(f"quire-loadtest --encoding {encoding}: exit code "
                               f"{result.returncode}: {result.stdout[:500]}")
        report = json.loads(result.stdout)
        if link:
            report["interface_bytes"] = link.received_bytes() - before
        return report

    def measure(self, link_name, link, name, archive, stem):
        command = link.command("server") if link else ()
        with LiveServer(str(self.quired), [f"bench={archive}"],
                        *self.arguments.serve_options.split(), command=command,
                        host=link.host if link else "127.0.0.1") as server:
            # The first run reads from disk for all others.
            self.load(server, link, stem, "identity")
            best = {}
            for _ in range(self.arguments.repetitions):
                for encoding in self.arguments.encodings:
                    report = self.load(server, link, stem, encoding)
                    if (encoding not in best or report["requests_per_second"]
                            > best[encoding]["requests_per_second"]):
                        best[encoding] = report
        for encoding, report in best.items():
            self.rows.append(self.row(name, link_name, encoding, report))
            say(" | ".join(map(str, self.rows[-1].values())))

    @staticmethod
    def row(name, link_name, encoding, report):
        count = max(1, report["right"])
        interface = report.get("interface_bytes")
        return dict(zip(COLUMNS, (
            name, link_name, encoding, round(report["requests_per_second"]),
            round(report["text_bytes_per_second"] / 1e6, 1),
            round(report["wire_bytes"] / count), round(report["message_bytes"] / count),
            "-" if interface is None else round(interface / count),
            report["latency_ms"]["p50"], report["latency_ms"]["p99"])))

    def run(self):
        wants_links = self.arguments.links != ["loopback"]
        fault = wire_links.fault()
        if fault and wants_links:
            sys.exit(f"wire_bench: {fault}; --links loopback does without")
        self.prepare()
        for link_name in self.arguments.links:
            with contextlib.ExitStack() as stack:
                link = None
                if wants_links:
                    link = stack.enter_context(wire_links.WireLink(link_name))
                for corpus in self.corpora:
                    self.measure(link_name, link, *corpus)


def table(rows):
    """Returns Markdown lines: a row for each corpus and link."""
    found = {}
    for row in rows:
        found.setdefault((row["corpus"], row["link"]), []).append(row)
    encodings = " / ".join(dict.fromkeys(row["encoding"] for row in rows))

    def joined(each, column):
        return " / ".join(f"{row[column]:,}" for row in each)

    return markdown(["corpus", "link", f"answers/s in {encodings}", "bytes of data per answer"],
                    [[*key, joined(each, "answers/s"), joined(each, "data bytes an answer")]
                     for key, each in found.items()])


def main():
    arguments = parse_arguments()
    if arguments.smoke:
        arguments.links, arguments.requests, arguments.seconds = ["loopback"], 300, 20
    elif not arguments.corpus and not arguments.lines:
        sys.exit("wire_bench: give --corpus or --lines")
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.directory or pathlib.Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        bench = Bench(arguments, directory)
        bench.run()
    print_figures(arguments, bench.rows, table(bench.rows))


if __name__ == "__main__":
    main()
