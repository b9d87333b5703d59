#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How near Quire comes to what a disk can do and to what decoding can do: the
same archive, cold, past the page cache (O_DIRECT), measured in turns in one run.

    loadtest/device_bench.py --corpus /data/webdocs256.raw --out /var/tmp/device

RANDOM, ranges of 16 KiB a second:
  disk        fio: random reads of the segment file, of the size that the next
              row's reads had on average, rounded up to 4 KiB, at the same depth,
              by io_uring; divided by the reads that a range took
  decode      the same blocks out of memory, on all cores, without any reading
  storage     reading and decoding as the server does it, without gRPC
  both        what the cores could do if they did nothing but fio's work and
              decoding: each takes CPU time that the other has not
  random      `quired serve` and quire-loadtest, which shares the cores with it and
              compares every byte; --in-flight calls under way
  batch       the same ranges by BatchRead
FULL, MB of text a second: fio reads sequentially, the others all blocks in
order. The server's rows are scans by a client with as many streams as there are
cores, in two wire encodings: `identity`, where the server decodes, and `stored`,
where it sends the blocks as they lie on the disk and the client decodes. The
client checks every checksum, over and over for --seconds; that the bytes are the
source's, a scan of each encoding shows in the first repetition, untimed.

What is aimed at is storage of at least 85 % of the slower of disk and decode.
The best of --repetitions counts. Needs fio (deploy/bootstrap.sh bench).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from bench_setup import find_programs, make_parser
from codec_table import markdown
from disk_runs import (Loader, cold_server, drop_cache, folder_bytes, keep_archive, metric_sums,
                       segment_files)

SCAN_DEPTH = 8
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
    parser.add_argument("--in-flight", type=int, default=64, help="requests under way")
    parser.add_argument("--batch-size", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--page-cache", action="store_true",
                        help="through the page cache, for where O_DIRECT does not work")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


class DeviceBench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.bench, self.quired = find_programs(arguments.build, "archive_bench", "quired")
        self.loader = Loader(arguments.build)
        self.fio = shutil.which("fio")
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
        self.figures = {}

    def keep(self, name, value):
        """The best counts."""
        if value is not None and value > self.figures.get(name, 0):
            self.figures[name] = value

    def storage(self, mode, *options):
        arguments = self.arguments
        drop_cache(self.archive)
        output = subprocess.run(
            [str(word) for word in (
                self.bench, self.archive, "--mode", mode, "--seconds", arguments.seconds,
                "--device-depth", arguments.depth, "--in-flight",
                arguments.in_flight if mode == "random" else SCAN_DEPTH,
                *([] if arguments.page_cache else ["--direct-io"]), *options)],
            stdout=subprocess.PIPE, check=True).stdout
        return json.loads(output)

    def disk(self, pattern, size, depth):
        """fio's reads and bytes a second, and CPU seconds of a read."""
        drop_cache(self.archive)
        output = subprocess.run(
            [self.fio, "--name=disk", f"--filename={self.segment}", "--readonly", f"--rw={pattern}",
             f"--bs={size}", f"--iodepth={depth}", "--ioengine=io_uring",
             f"--direct={0 if self.arguments.page_cache else 1}", "--time_based",
             f"--runtime={max(1, round(1000 * self.arguments.seconds))}ms", "--output-format=json"],
            stdout=subprocess.PIPE, check=True).stdout
        # Notes may come before it.
        job = json.loads(output[output.index(b"{"):])["jobs"][0]
        reads = job["read"]["iops"]
        busy = (job["usr_cpu"] + job["sys_cpu"]) / 100
        return reads, job["read"]["bw_bytes"], busy / max(reads, 1)

    def measure_storage(self):
        random = self.storage("random")
        decode = self.storage("random", "--what", "decode")
        reads = random["device_reads"] / random["requests"]
        size = -(-random["device_read_bytes"] // random["device_reads"] // 4096) * 4096
        self.figures["read_bytes"], self.figures["reads_a_range"] = size, round(reads, 3)
        self.keep("storage", random["requests"] / random["seconds"])
        self.keep("decode", decode["requests"] / decode["seconds"])
        scan, all_decoded = self.storage("scan"), self.storage("scan", "--what", "decode")
        self.keep("scan_storage", scan["text_bytes"] / 1e6 / scan["seconds"])
        self.keep("scan_decode", all_decoded["text_bytes"] / 1e6 / all_decoded["seconds"])
        if self.fio:
            rate, _, cpu_seconds = self.disk("randread", size, self.arguments.depth)
            self.keep("disk", rate / reads)
            cpu_of_range = os.cpu_count() / (decode["requests"] / decode["seconds"])
            self.keep("both", os.cpu_count() / (cpu_of_range + cpu_seconds * reads))
            size = min(1 << 20, self.segment.stat().st_size // 4096 * 4096)
            _, speed, _ = self.disk("read", size, SCAN_DEPTH)
            self.keep("scan_disk", speed * self.expansion / 1e6)

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
        say(f"{self.archive}: {folder_bytes(self.archive):,} bytes; about "
            f"{self.arguments.repetitions * (10 * self.arguments.seconds + 8):.0f} s"
            + ("" if self.fio else "; no fio: deploy/bootstrap.sh bench installs it"))
        for repetition in range(self.arguments.repetitions):
            self.measure_storage()
            self.measure_scans(compares=repetition == 0)
            self.measure_server()
            say(f"repetition {repetition + 1}: {json.dumps(self.figures)}")


def tables(figures):
    """Markdown lines."""
    def rate(name, digits=0):
        return f"{figures[name]:,.{digits}f}" if name in figures else "-"

    def share(name, *limits):
        known = [figures[limit] for limit in limits if limit in figures]
        return (f"{100 * figures[name] / min(known):.0f} %"
                if name in figures and len(known) == len(limits) else "-")

    lines = markdown(
        ["RANDOM, 16 KiB", "ranges/s", "of the slower of disk and decode", "of both"],
        [[label, rate(name), share(name, "disk", "decode"), share(name, "both")]
         for label, name in (("disk (fio)", "disk"), ("decode", "decode"), ("both", "both"),
                             ("storage", "storage"), ("server, RANDOM", "random"),
                             ("server, BATCH", "batch"))])
    lines += ["", *markdown(
        ["FULL", "MB/s of text", "of the slower of disk and decode"],
        [[label, rate(name), share(name, "scan_disk", "scan_decode")]
         for label, name in (("disk (fio)", "scan_disk"), ("decode", "scan_decode"),
                             ("storage", "scan_storage"),
                             *((f"server, {encoding}", f"full_{encoding}")
                               for encoding in SCAN_ENCODINGS))])]
    lines += ["", f"{figures['read_bytes']:,} bytes a read, {figures['reads_a_range']} reads a "
              "range; blocks that the server found in its cache: "
              + ", ".join(f"{name} {figures[f'{name}_cache_hits_percent']} %"
                          for name in CACHE_FIGURES) + "."]
    return lines


def main():
    arguments = parse_arguments()
    bench = DeviceBench(arguments)
    load_before = os.getloadavg()[0]
    bench.run()
    if arguments.json:
        print(json.dumps(bench.figures, indent=2))
    else:
        print(f"{bench.archive.name}: {bench.text_bytes:,} bytes of text, "
              f"{folder_bytes(bench.archive):,} stored; {os.cpu_count()} cores, load average "
              f"before {load_before:.1f}\n")
        print("\n".join(tables(bench.figures)))


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, RuntimeError, ValueError) as error:
        sys.exit(f"device_bench.py: {error}")
