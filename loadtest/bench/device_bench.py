#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a cold server with the disk alone and with decoding alone: one archive, read
past the page cache (O_DIRECT), in alternating runs.

    loadtest/bench/device_bench.py --corpus /data/webdocs256.raw --out /var/tmp/device

  disk      fio: reads of the segment file by io_uring, of the mean size of the server's
            reads; divided by the reads that a range took
  decoding  the same text in memory, on all cores, without reading (codec_figures)
  random    `quired serve` and quire-loadtest, --in-flight calls of 16 KiB in flight
  batch     the same ranges by BatchRead
  scans     all blocks in order: `identity`, where the server decodes, and `stored`, where
            the client does

quire-loadtest shares the cores with the server and compares every byte with the source,
except in scans, where it checks checksums. Needs fio (deploy/bootstrap.sh bench),
without which the disk's row is empty.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import AS_IT_IS, find_programs, make_parser
from disk_runs import (RANGE_BYTES, Loader, cold_server, drop_cache, keep_archive, metric_sums,
                       segment_files)
from live_server import make_documents, write_corpus
from markdown_table import format_number, markdown

SCAN_ENCODINGS = ("identity", "stored")
ROWS = (("disk alone (fio)", "random_disk", "scan_disk"),
        ("decoding alone", "random_decode", "scan_decode"),
        ("server: Read; Scan in identity", "random", "scan_identity"),
        ("server: BatchRead; Scan in stored blocks", "batch", "scan_stored"))


def parse_arguments():
    parser = make_parser(__doc__, "codec_figures", "quired", "quire-loadtest")
    parser.add_argument("--corpus", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path,
                        help="on the disk to be measured; the archive is kept there")
    parser.add_argument("--codec", default="rlz")
    parser.add_argument("--block-size", default="64KiB")
    parser.add_argument("--dictionary-size", default="16MiB")
    parser.add_argument("--depth", type=int, default=32, help="reads at the disk")
    parser.add_argument("--in-flight", type=int, default=64, help="requests in flight")
    parser.add_argument("--batch-size", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--page-cache", action="store_true",
                        help="through the page cache, for where O_DIRECT does not work")
    parser.add_argument("--smoke", action="store_true", help="a small generated text, briefly")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.smoke and not (arguments.corpus and arguments.out):
        parser.error("--corpus and --out are required, unless --smoke is given")
    return arguments


class DeviceBench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.codec_figures, self.quired = find_programs(arguments.build, "codec_figures", "quired")
        self.loader = Loader(arguments.build)
        self.fio = shutil.which("fio")
        arguments.out.mkdir(parents=True, exist_ok=True)
        self.options = ["--dictionary-size", arguments.dictionary_size]
        name = "-".join((arguments.corpus.stem, arguments.codec.replace(":", "-"),
                         arguments.block_size, arguments.dictionary_size))
        self.archive, _ = keep_archive(
            self.quired, arguments.corpus, arguments.out, name,
            ["--codec", arguments.codec, "--block-size", arguments.block_size, *AS_IT_IS,
             *self.options])
        self.segment, = segment_files(self.archive)
        # Row -> measurements, in order: ranges per second, or MB of text.
        self.rates = {}

    def keep(self, name, value):
        self.rates.setdefault(name, []).append(value)

    def server(self):
        arguments = self.arguments
        return cold_server(self.quired, "bench", self.archive, "--drive", "solid-state",
                           "--direct-io", "off" if arguments.page_cache else "on",
                           command=("env", f"QUIRED_EXPERIMENT_DEVICE_DEPTH={arguments.depth}"))

    def measure_decoding(self):
        arguments, cores = self.arguments, os.cpu_count()
        printed = subprocess.run(
            [self.codec_figures, arguments.corpus, "--codecs", arguments.codec, "--block-sizes",
             arguments.block_size, *self.options, "--threads", str(cores), "--seconds",
             str(arguments.seconds / 3)], check=True, text=True, stdout=subprocess.PIPE).stdout
        found = json.loads(printed)
        self.keep("random_decode", found["ranges_per_second"] * cores)
        self.keep("scan_decode", found["decode_mb_per_second"] * cores)

    def measure_disk(self, row, pattern, size, units):
        """`units`: ranges, or MB of text, per read."""
        if not self.fio:
            return
        drop_cache(self.archive)
        output = subprocess.run(
            [self.fio, "--name=disk", f"--filename={self.segment}", "--readonly",
             f"--rw={pattern}", f"--bs={size}", f"--iodepth={self.arguments.depth}",
             "--ioengine=io_uring", f"--direct={0 if self.arguments.page_cache else 1}",
             "--time_based", f"--runtime={max(1, round(1000 * self.arguments.seconds))}ms",
             "--output-format=json"], stdout=subprocess.PIPE, check=True).stdout
        # Notes may precede it.
        job = json.loads(output[output.index(b"{"):])["jobs"][0]
        self.keep(row, job["read"]["iops"] * units)

    def measure_reads(self):
        arguments = self.arguments
        for mode in ("random", "batch"):
            with self.server() as server:
                run = self.loader.run(server, "bench", arguments.corpus, mode, arguments.seconds,
                                      arguments.in_flight, arguments.batch_size)
                sums = metric_sums(server.metrics())
            self.keep(mode, run["requests"] / run["seconds"])
            if mode == "random":
                reads = max(1, sums["quire_device_reads_total"])
                size = -(-sums["quire_device_read_bytes_total"] // reads // 4096) * 4096
                self.measure_disk("random_disk", "randread", int(max(size, 4096)),
                                  run["requests"] / reads)

    def measure_scans(self):
        for encoding in SCAN_ENCODINGS:
            with self.server() as server:
                self.keep(f"scan_{encoding}", self.loader.scan(
                    server, "bench", encoding, self.arguments.seconds, os.cpu_count()))
        stored = self.segment.stat().st_size
        size = min(1 << 20, stored // 4096 * 4096)
        self.measure_disk("scan_disk", "read", size,
                          size / stored * self.arguments.corpus.stat().st_size / 1e6)

    def run(self):
        """Returns medians."""
        for _ in range(self.arguments.repetitions):
            self.measure_decoding()
            self.measure_reads()
            self.measure_scans()
        return {name: statistics.median(rates) for name, rates in self.rates.items()}


def table(figures):
    """Returns Markdown lines; shares are of the slower of disk and decoding."""
    def cells(name, mode):
        limits = [figures.get(f"{mode}_{what}") for what in ("disk", "decode")]
        share = (f"{100 * figures[name] / min(limits):.0f} %"
                 if name in figures and None not in limits else "-")
        return [format_number(figures.get(name)), share]

    return markdown(
        [f"what, ranges of {RANGE_BYTES >> 10} KiB and all in order", "ranges/s", "share", "MB/s",
         "share"],
        [[label, *cells(ranges, "random"), *cells(scan, "scan")] for label, ranges, scan in ROWS])


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        if arguments.smoke:
            write_corpus(make_documents(40, seed=3), f"{directory}/smoke")
            arguments.corpus, arguments.out = (pathlib.Path(directory, "smoke.raw"),
                                               pathlib.Path(directory))
            arguments.seconds, arguments.repetitions, arguments.batch_size = 0.2, 1, 20
            arguments.dictionary_size, arguments.page_cache = "64KiB", True
        figures = DeviceBench(arguments).run()
    print_figures(arguments, figures, table(figures))


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, RuntimeError, ValueError) as error:
        sys.exit(f"device_bench.py: {error}")
