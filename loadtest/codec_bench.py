#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes and speeds of codecs over a corpus: codec x block size x dictionary size.

Writes into --out: results.csv with every figure, results.md with the tables, and
pareto.svg, rate against random access (Figure 2 of "Access Time Tradeoffs in
Archive Compression", for one machine). Every decoded byte is compared with the
text. A row that results.csv has is not measured again, so a run that was stopped
goes on, and other codecs or sizes can be added by another run with the same --out.

The corpus is STEM.raw, any file. With STEM.tsv (offset, size and id of each
document) whole documents are read, too; with STEM.tar archives are built of that.
--slice N takes STEMN.raw instead: N MiB out of STEM.raw, say.

Rates count payload, dictionary under xz -9e (in brackets: under zlib -9, as the
paper's programs keep it) and block index under zlib -9, in percent of the text. A
~ marks the rate of a sample: see --encode-seconds. Speeds are for a second of one
thread's CPU time, in memory: building while other threads build, too (see
--encode-threads), reading alone, the best of three repetitions. Build MB/s leaves
out indexing the dictionary, which results.csv has (prepare_cpu_seconds). Peak
memory is that of the run: dictionary, its index, and the text as stored.
"""
import concurrent.futures
import datetime
import os
import pathlib
import subprocess
import sys

import codec_peers
from bench_json import write_json
from bench_setup import make_parser
from codec_plot import render
from codec_runs import (Codecs, Dictionaries, archive_sizes, measure_archive, measure_blocks,
                        measure_store, middle, write_documents)
from codec_table import (archive_table, block_table, complete, format_size, key_of, read_csv,
                         store_table, write_csv)
from live_server import parse_size

MIB = 1 << 20


def parse_list(text):
    return [word for word in text.split(",") if word]


def parse_sizes(text):
    return [parse_size(word) for word in parse_list(text)]


def parse_arguments():
    parser = make_parser(__doc__, "codec_bench", "quired")
    parser.add_argument("--corpus", metavar="STEM", required=True, help="path without .raw")
    parser.add_argument("--slice", type=int, metavar="N", help="STEMN.raw, of N MiB")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", required=True)
    parser.add_argument("--codecs", type=parse_list, help="NAME[:LEVEL],... (default: all at "
                        "their default levels, and some at others)")
    parser.add_argument("--block-sizes", type=parse_sizes, default="16KiB,64KiB,256KiB")
    parser.add_argument("--dictionary-sizes", type=parse_sizes, default="4MiB,16MiB,64MiB")
    parser.add_argument("--dictionary-methods", type=parse_list, default="coverage",
                        help="coverage,uniform (archives and stores: the first)")
    parser.add_argument("--encode-seconds", type=float, default=40, help="of CPU time: a codec "
                        "that would take longer for the text encodes a sample of it, 256 KiB "
                        "pieces at equal distances; 0: always all of it")
    parser.add_argument("--encode-threads", type=int, default=os.cpu_count())
    parser.add_argument("--decode-seconds", type=float, default=0.3,
                        help="of each repetition of each timed loop")
    parser.add_argument("--repetitions", type=int, default=3, help="of which the best counts")
    parser.add_argument("--archives", choices=["yes", "no"], default="yes",
                        help="whether `quired build` is run for sizes on disk")
    parser.add_argument("--peers", choices=["auto", "yes", "no"], default="auto",
                        help="bgzip, LZO, Blosc and RocksDB (deploy/bootstrap.sh bench installs "
                        "them); auto: if they are there")
    parser.add_argument("--blosc-widths", type=parse_list, default="1", metavar="N,...",
                        help="bytes of the numbers that Blosc takes the text for: 1, 2, 4, 8 "
                        "(default: 1, no shuffle)")
    parser.add_argument("--jobs", type=int, default=1,
                        help="runs at a time; with more than one, times mean little")
    parser.add_argument("--json", metavar="FILE",
                        help="also write the rows of results.csv there")
    parser.add_argument("--label", help="of the machine, for table and picture")
    return parser.parse_args()


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def commit():
    result = subprocess.run(["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False,
                            cwd=pathlib.Path(__file__).parent)
    return result.stdout.strip() or "unknown"


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.out = arguments.out
        self.out.mkdir(parents=True, exist_ok=True)
        program = arguments.build / "bin" / "codec_bench"
        if not program.exists():
            sys.exit(f"no {program}; build it first: cmake --build {arguments.build} "
                     "--target codec_bench quired")
        self.stem = arguments.corpus
        self.text = pathlib.Path(f"{self.stem}{arguments.slice or ''}.raw")
        if not self.text.exists():
            sys.exit(f"{self.text}: no such file; --corpus is its path without .raw")
        self.text_bytes = self.text.stat().st_size
        self.codecs = Codecs(program)
        self.dictionaries = Dictionaries(program, self.out / "dictionaries")
        self.specs = (list(map(self.codecs.canonical, arguments.codecs)) if arguments.codecs
                      else self.codecs.defaults())
        self.csv = self.out / "results.csv"
        self.rows = read_csv(self.csv)
        self.done = {key_of(row) for row in self.rows}

    def say(self, text):
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)

    def keep(self, rows):
        for row in map(complete, rows):
            self.rows.append(row)
            self.done.add(key_of(row))
            self.say(f"{row['kind']} {row['codec']}, blocks {format_size(row['block_size_bytes'])}, "
                     f"dictionary {format_size(row['dictionary_size_bytes'])}: {row['rate_percent']} %")
        write_csv(self.csv, self.rows)

    def is_done(self, **columns):
        return key_of(columns) in self.done

    def block_runs(self):
        """(spec, block sizes that are not measured, method, size) of each run."""
        for spec in self.specs:
            dictionaries = [(None, None)]
            if self.codecs.needs_dictionary(spec):
                dictionaries = [(method, size) for size in self.arguments.dictionary_sizes
                                for method in self.arguments.dictionary_methods]
            for method, size in dictionaries:
                block_sizes = [block_size for block_size in self.arguments.block_sizes
                               if not self.is_done(
                                   kind="block", codec=spec, block_size_bytes=block_size,
                                   dictionary_method=method, dictionary_size_bytes=size,
                                   text_bytes=self.text_bytes)]
                if block_sizes:
                    yield spec, block_sizes, method, size

    def measure_blocks(self):
        runs = list(self.block_runs())
        # Before anything runs at a time.
        for method, size in dict.fromkeys((run[2], run[3]) for run in runs if run[3]):
            self.say(f"dictionary: {method}, {format_size(size)}")
            self.dictionaries.get(self.text, method, size)
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            tasks = [pool.submit(measure_blocks, self.codecs, self.dictionaries, self.arguments,
                                 self.text, *run) for run in runs]
            try:
                for task in concurrent.futures.as_completed(tasks):
                    self.keep(task.result())
            finally:
                # If one failed, those that have not begun shall not.
                for task in tasks:
                    task.cancel()

    def measure_archives(self):
        quired = self.arguments.build / "bin" / "quired"
        tar = pathlib.Path(f"{self.stem}.tar")
        source = tar if tar.exists() and not self.arguments.slice else self.text
        method = self.arguments.dictionary_methods[0]
        sizes = archive_sizes(self.arguments.block_sizes, self.arguments.dictionary_sizes)
        for spec in self.codecs.flagships():
            for block_size, size in sizes:
                if not self.is_done(kind="archive", codec=spec, block_size_bytes=block_size,
                                    dictionary_method=method, dictionary_size_bytes=size,
                                    text_bytes=self.text_bytes):
                    self.keep([measure_archive(quired, source, self.text_bytes, spec, block_size,
                                               method, size, self.out)])

    def measure_stores(self, program):
        """Whole documents: RocksDB, and the flagship over the same documents."""
        text, index = write_documents(self.stem, self.text_bytes, self.out)
        size, seconds = text.stat().st_size, self.arguments.decode_seconds
        method = self.arguments.dictionary_methods[0]
        dictionary_size = middle(self.arguments.dictionary_sizes)
        for block_size in codec_peers.ROCKSDB_BLOCK_SIZES:
            if program and not self.is_done(
                    kind="store", codec="RocksDB zstd:3", block_size_bytes=block_size,
                    dictionary_method="trained", text_bytes=size,
                    dictionary_size_bytes=codec_peers.ROCKSDB_DICTIONARY_SIZE):
                self.keep([codec_peers.measure_rocksdb(program, text, index, block_size, self.out,
                                                       seconds)])
            for spec in self.codecs.flagships():
                if not self.is_done(kind="store", codec=spec, block_size_bytes=block_size,
                                    dictionary_method=method, text_bytes=size,
                                    dictionary_size_bytes=dictionary_size):
                    self.keep([measure_store(self.codecs, self.dictionaries, self.arguments, text,
                                             index, spec, block_size, method, dictionary_size)])
        text.unlink()
        index.unlink()

    def measure_peers(self):
        lacking = codec_peers.missing()
        if lacking and self.arguments.peers == "yes":
            sys.exit(f"not installed: {lacking}; deploy/bootstrap.sh bench does it")
        program = None
        if self.arguments.peers != "no" and not lacking:
            program = codec_peers.build(self.out)
            if not self.is_done(kind="block", codec="bgzip", text_bytes=self.text_bytes,
                                block_size_bytes=codec_peers.BGZF_BLOCK_SIZE):
                self.keep([codec_peers.measure_bgzip(program, self.text, self.out,
                                                     self.arguments.decode_seconds)])
            for codec in ["lzo", *(f"blosc:{width}" for width in self.arguments.blosc_widths)]:
                for block_size in self.arguments.block_sizes:
                    if not self.is_done(kind="block", codec=codec, text_bytes=self.text_bytes,
                                        block_size_bytes=block_size):
                        self.keep([codec_peers.measure_block_codec(
                            program, codec, self.text, block_size,
                            self.arguments.decode_seconds)])
        if pathlib.Path(f"{self.stem}.tsv").exists():
            self.measure_stores(program)

    def write(self):
        """The tables in the order of the registry, not of measuring; peers last."""
        names = list(self.codecs.known)

        def place(row):
            name, _, level = row["codec"].partition(":")
            return (names.index(name) if name in names else len(names),
                    int(level) if level.isdigit() else 0, row["codec"],
                    row["dictionary_size_bytes"] or 0, row["dictionary_method"] or "",
                    row["block_size_bytes"])

        rows = sorted(self.rows, key=place)
        if self.arguments.json:
            write_json(self.arguments.json, rows)
        machine = self.arguments.label or f"{os.cpu_count()} cores of {processor()}"
        title = f"{self.text.stem}, {self.text_bytes:,} bytes"
        lines = [f"{title}; {machine}; commit {commit()}.", "", *block_table(rows)]
        for kind, heading, table in (
                ("archive", "Archives, all files as `quired build` wrote them:", archive_table),
                ("store", "Stores of whole documents:", store_table)):
            if any(row["kind"] == kind for row in rows):
                lines += ["", heading, "", *table(rows)]
        (self.out / "results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (self.out / "pareto.svg").write_text(render(rows, f"{title}, {machine}"), encoding="utf-8")

    def run(self):
        self.measure_blocks()
        if self.arguments.archives == "yes":
            self.measure_archives()
        self.measure_peers()
        self.write()
        self.say(f"{self.out}: results.csv, results.md, pareto.svg")


if __name__ == "__main__":
    try:
        Bench(parse_arguments()).run()
    except (subprocess.CalledProcessError, RuntimeError, ValueError) as error:
        sys.exit(f"codec_bench.py: {error}")
