#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How close Quire comes to the disk alone and to decoding alone: the
same archive, cold, past the page cache (O_DIRECT), measured in turns in one run.

    loadtest/device_bench.py --corpus /data/webdocs256.raw --out /var/tmp/device

RANDOM, ranges of 16 KiB a second:
  disk        fio: random reads of the segment file, of the size that storage's
              reads had on average, rounded up to 4 KiB, at the same depth, by
              io_uring; divided by the reads that a range took
  decode      the same blocks out of memory, on all cores, without any reading
  with fio    the same decoding while fio makes as many reads a second as storage
              made: what reading leaves of the cores, be it in this machine's
              kernel or in the host's, where that has no cores of its own
  storage     reading and decoding as the server does it, without gRPC
  random      `quired serve` and quire-loadtest, which shares the cores with it and
              compares every byte; --in-flight calls in flight
  batch       the same ranges by BatchRead
FULL, MB of text a second: fio reads sequentially, the others all blocks in
order. The server's rows are scans by a client with as many streams as there are
cores, in two wire encodings: `identity`, where the server decodes, and `stored`,
where it sends the blocks as they lie on the disk and the client decodes. The
client checks every checksum, over and over for --seconds; that the bytes are the
source's, a scan of each encoding shows in the first repetition, untimed.

What is aimed at is storage of at least 85 % of the slower of disk and decode.
Decoding and storage take short turns, and so do decoding alone and during fio, since
a machine's speed moves within a minute: shares of decoding are medians of those in
each pair of turns, rates and all other shares are of medians. Needs fio
(deploy/bootstrap.sh bench).
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from codec_table import markdown
from disk_runs import (Loader, cold_server, drop_cache, directory_bytes, keep_archive, metric_sums,
                       segment_files)

SCAN_DEPTH = 8
# Turns of decoding and storage in a repetition, and of decoding alone and with fio.
ROUNDS = 6
# Until fio reads.
FIO_START_SECONDS = 0.4
SCAN_ENCODINGS = ("identity", "stored")
CACHE_FIGURES = (*(f"full_{encoding}" for encoding in SCAN_ENCODINGS), "batch", "random")


def parse_arguments():
    parser = make_parser(__doc__, "archive_bench", "quired", "quire-loadtest")
    parser.add_argument("--corpus", metavar="FILE", type=pathlib.Path, required=True)
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, required=True,
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
    add_json_option(parser)
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


class DeviceBench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.bench, self.quired = find_programs(arguments.build, "archive_bench", "quired")
        self.loader = Loader(arguments.build)
        self.fio_path = shutil.which("fio")
        arguments.out.mkdir(parents=True, exist_ok=True)
        name = "-".join((arguments.corpus.stem, arguments.codec.replace(":", "-"),
                         arguments.block_size, arguments.dictionary_size))
        self.archive, _ = keep_archive(
            self.quired, arguments.corpus, arguments.out, name,
            ["--codec", arguments.codec, "--block-size", arguments.block_size,
             "--dictionary-size", arguments.dictionary_size])
        self.text_bytes = arguments.corpus.stat().st_size
        self.segment, = segment_files(self.archive)
        # Of text a stored byte, for scans.
        self.expansion = self.text_bytes / self.segment.stat().st_size
        # What was measured, in order, and what is the same in each repetition.
        self.rates = {}
        # (storage, with_fio) of decode, in the pairs of turns.
        self.shares = {}
        self.figures = {}

    def keep(self, name, value):
        self.rates.setdefault(name, []).append(value)

    def turns(self, mode, what, rounds):
        """Of each turn of archive_bench, what it prints."""
        arguments = self.arguments
        drop_cache(self.archive)
        output = subprocess.run(
            [str(word) for word in (
                self.bench, self.archive, "--mode", mode, "--what", what, "--rounds", rounds,
                "--seconds", arguments.seconds / ROUNDS, "--device-depth", arguments.depth,
                "--in-flight", arguments.in_flight if mode == "random" else SCAN_DEPTH,
                *([] if arguments.page_cache else ["--direct-io"]))],
            stdout=subprocess.PIPE, check=True, text=True).stdout
        return [json.loads(line) for line in output.splitlines()]

    def fio(self, pattern, size, depth, seconds, *options):
        return [self.fio_path, "--name=disk", f"--filename={self.segment}", "--readonly",
                f"--rw={pattern}", f"--bs={size}", f"--iodepth={depth}", "--ioengine=io_uring",
                f"--direct={0 if self.arguments.page_cache else 1}", "--time_based",
                f"--runtime={max(1, round(1000 * seconds))}ms", "--output-format=json", *options]

    def disk(self, pattern, size, depth):
        """fio's reads and bytes a second."""
        drop_cache(self.archive)
        output = subprocess.run(self.fio(pattern, size, depth, self.arguments.seconds),
                                stdout=subprocess.PIPE, check=True).stdout
        # Notes may come before it.
        job = json.loads(output[output.index(b"{"):])["jobs"][0]
        return job["read"]["iops"], job["read"]["bw_bytes"]

    def measure_with_fio(self, mode, size, reads_a_second):
        """Decoding alone, and while fio reads as much as storage does."""
        seconds = self.arguments.seconds / ROUNDS
        command = self.fio("randread" if mode == "random" else "read", size,
                           self.arguments.depth, 2 * FIO_START_SECONDS + 2 * seconds,
                           f"--rate_iops={max(1, round(reads_a_second))}")
        for _ in range(ROUNDS):
            alone, = self.turns(mode, "decode", 1)
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as fio:
                time.sleep(FIO_START_SECONDS)
                with_fio, = self.turns(mode, "decode", 1)
                fio.wait()
            self.keep(f"{mode}_with_fio", speed(with_fio, mode))
            self.shares.setdefault(f"{mode}_with_fio", []).append(
                speed(with_fio, mode) / speed(alone, mode))

    def measure_storage(self, mode):
        rows = self.turns(mode, "both", ROUNDS)
        turns = {what: [row for row in rows if row["what"] == what]
                 for what in ("decode", "storage")}
        for decode, storage in zip(turns["decode"], turns["storage"]):
            self.keep(f"{mode}_decode", speed(decode, mode))
            self.keep(f"{mode}_storage", speed(storage, mode))
            self.shares.setdefault(f"{mode}_storage", []).append(
                speed(storage, mode) / speed(decode, mode))
        sums = {name: sum(row[name] for row in turns["storage"])
                for name in ("requests", "device_reads", "device_read_bytes", "seconds")}
        reads = sums["device_reads"] / sums["requests"]
        size = -(-sums["device_read_bytes"] // sums["device_reads"] // 4096) * 4096
        self.figures[f"{mode}_read_bytes"] = size
        self.figures[f"{mode}_reads_a_request"] = round(reads, 3)
        if self.fio_path:
            self.measure_with_fio(mode, size, sums["device_reads"] / sums["seconds"])
            if mode == "random":
                self.keep("random_disk", self.disk("randread", size, self.arguments.depth)[0] / reads)
            else:
                size = min(1 << 20, self.segment.stat().st_size // 4096 * 4096)
                self.keep("scan_disk", self.disk("read", size, SCAN_DEPTH)[1]
                          * self.expansion / 1e6)

    def server(self):
        arguments = self.arguments
        return cold_server(self.quired, "bench", self.archive, "--drive", "solid-state",
                           "--device-depth", arguments.depth, "--direct-io",
                           "off" if arguments.page_cache else "on")

    def note_hits(self, name, server):
        sums = metric_sums(server.metrics())
        hits = sums["quire_cache_hits_total"]
        self.figures[f"{name}_cache_hits_percent"] = round(
            100 * hits / max(1, hits + sums["quire_cache_misses_total"]), 1)

    def measure_scans(self, compares):
        for encoding in SCAN_ENCODINGS:
            name = f"full_{encoding}"
            with self.server() as server:
                self.keep(name, self.loader.scan(server, "bench", encoding,
                                                 self.arguments.seconds, os.cpu_count()))
                self.note_hits(name, server)
                if compares:
                    self.loader.scan(server, "bench", encoding, None, 1, self.arguments.corpus)

    def measure_server(self):
        arguments = self.arguments
        for mode in ("batch", "random"):
            with self.server() as server:
                run = self.loader.run(server, "bench", arguments.corpus, mode, arguments.seconds,
                                      arguments.in_flight, arguments.batch_size)
                self.note_hits(mode, server)
            self.keep(mode, run["requests"] / run["seconds"])

    def run(self):
        say(f"{self.archive}: {directory_bytes(self.archive):,} bytes; about "
            f"{self.arguments.repetitions * (16 * self.arguments.seconds + 25):.0f} s"
            + ("" if self.fio_path else "; no fio: deploy/bootstrap.sh bench installs it"))
        for repetition in range(self.arguments.repetitions):
            self.measure_storage("random")
            self.measure_storage("scan")
            self.measure_scans(compares=repetition == 0)
            self.measure_server()
            say(f"repetition {repetition + 1}: {json.dumps(self.result())}")

    def result(self):
        """All figures: rates are medians, and so are the shares of decode."""
        return {**self.figures,
                **{name: round(statistics.median(rates), 1) for name, rates in self.rates.items()},
                **{f"{name}_of_decode": round(statistics.median(shares), 3)
                   for name, shares in self.shares.items()}}


def speed(turn, mode):
    """Ranges, or MB of text, a second."""
    done = turn["requests"] if mode == "random" else turn["text_bytes"] / 1e6
    return done / turn["seconds"]


def share_of_limit(figures, name, mode, limit):
    """Of decode while the disk is read, or alone; where the disk is slower, of that.
    None if one of the three was not measured."""
    disk = figures.get(f"{mode}_disk")
    if name not in figures or limit not in figures or disk is None:
        return None
    of_decode = figures.get(f"{name}_of_decode", figures[name] / figures[f"{mode}_decode"])
    of_limit = of_decode / figures.get(f"{limit}_of_decode", 1)
    return max(of_limit, figures[name] / disk)


def tables(figures):
    """Markdown lines."""
    def rate(name):
        return f"{figures[name]:,.0f}" if name in figures else "-"

    def percent(share):
        return "-" if share is None else f"{100 * share:.0f} %"

    def rows(mode, *labels):
        return [[label, rate(name), percent(share_of_limit(figures, name, mode, f"{mode}_decode")),
                 percent(share_of_limit(figures, name, mode, f"{mode}_with_fio"))]
                for label, name in (("disk (fio)", f"{mode}_disk"), ("decode", f"{mode}_decode"),
                                    ("decode during fio's reads", f"{mode}_with_fio"),
                                    ("storage", f"{mode}_storage"), *labels)]

    shares = ["of the slower of disk and decode", "of that with reads"]
    lines = markdown(["RANDOM, 16 KiB", "ranges/s", *shares],
                     rows("random", ("server, RANDOM", "random"), ("server, BATCH", "batch")))
    lines += ["", *markdown(
        ["FULL", "MB/s of text", *shares],
        rows("scan", *((f"server, {encoding}", f"full_{encoding}")
                       for encoding in SCAN_ENCODINGS)))]
    lines += ["", f"RANDOM: {figures['random_read_bytes']:,} bytes a read, "
              f"{figures['random_reads_a_request']} reads a range; FULL: "
              f"{figures['scan_read_bytes']:,} bytes a read. Blocks that the server found in its "
              "cache: " + ", ".join(f"{name} {figures[f'{name}_cache_hits_percent']} %"
                                    for name in CACHE_FIGURES) + "."]
    return lines


def main():
    arguments = parse_arguments()
    bench = DeviceBench(arguments)
    load_before = os.getloadavg()[0]
    bench.run()
    head = (f"{bench.archive.name}: {bench.text_bytes:,} bytes of text, "
            f"{directory_bytes(bench.archive):,} stored; {os.cpu_count()} cores, load average "
            f"before {load_before:.1f}")
    print_figures(arguments, bench.result(), [head, "", *tables(bench.result())])


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, RuntimeError, ValueError) as error:
        sys.exit(f"device_bench.py: {error}")
