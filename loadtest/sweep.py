#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Archive size against access rate: codec x dictionary size x block size x mode x
device, over a real server (Figures 2 and 3 of "Access Time Tradeoffs in Archive
Compression").

    loadtest/sweep.py --corpus /data/webdocs256.raw --out /var/tmp/sweep

Archives are built once and kept in --out/archives. Each cell starts a server with
nothing in memory and as small a cache as it takes (what it found there all the
same is in the tables), and loads it as the paper did: FULL reads all in order,
BATCH hands over --batch-size ranges of 16 KiB at once, RANDOM has --in-flight
calls in flight (the paper: one). Every answer is compared with the corpus.

Writes into --out: results.csv with every figure, results.md and results.html with
tables and pictures, modes.svg (all panes) and random.svg (RANDOM alone, without
codec copy). A cell that results.csv has is not measured again, so a run that was
stopped goes on, and codecs, sizes or devices can be added by another run.

Devices: `real` is the disk that --out lies on, past the page cache if its file
system can; others are drives that `quired serve --device-model` knows. On those an
archive takes as little of the platter as its size says, so that the arm hardly
moves: what differs is mostly rotation, transfer and decoding.
"""
import argparse
import datetime
import os
import pathlib
import subprocess
import sys

import sweep_plot
from bench_json import write_json
from bench_setup import find_programs, make_parser
from codec_runs import Codecs
from codec_table import format_size, read_csv, write_csv
from disk_runs import (MODES, RANGE_BYTES, Loader, cold_server, directory_bytes, keep_archive,
                       metric_sums)
from live_server import parse_size
from sweep_report import html_page, markdown_page
from sweep_table import (COLUMNS, TEXT_COLUMNS, archives_of, estimate_seconds, key_of)


def parse_list(text):
    return [word for word in text.split(",") if word]


def parse_sizes(text):
    return [parse_size(word) for word in parse_list(text)]


def parse_modes(text):
    modes = parse_list(text)
    if not set(modes) <= set(MODES):
        raise argparse.ArgumentTypeError(f"modes are {', '.join(MODES)}")
    return [mode for mode in MODES if mode in modes]


def parse_device(text):
    """("wd-red", ["batch", "random"]) of "wd-red:batch+random"; all modes without."""
    name, _, modes = text.partition(":")
    return name, parse_modes(modes.replace("+", ",")) if modes else list(MODES)


def parse_devices(text):
    return [parse_device(word) for word in parse_list(text)]


def parse_arguments(words=None):
    parser = make_parser(__doc__, "codec_bench", "quired", "quire-loadtest")
    parser.add_argument("--corpus", metavar="FILE", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", required=True)
    parser.add_argument("--codecs", type=parse_list, help="NAME[:LEVEL],...",
                        default="copy,lz4,zlib:9,rlz-uv,rlz-pv,rlz-zz,rlz-zzz,rlz:2")
    parser.add_argument("--block-sizes", type=parse_sizes, default="16KiB,64KiB,256KiB")
    parser.add_argument("--dictionary-sizes", type=parse_sizes, default="4MiB,16MiB")
    parser.add_argument("--dictionary-method", default="coverage", choices=["coverage", "uniform"])
    parser.add_argument("--devices", type=parse_devices, default="real,wd-red:batch+random",
                        help="NAME[:MODE+MODE],... (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2, help="of a cell of mode random")
    parser.add_argument("--in-flight", type=int, default=1, help="calls in flight, mode random")
    parser.add_argument("--batch-size", type=int, default=10_000, help="mode batch, real disk")
    parser.add_argument("--model-batch-size", type=int, default=400,
                        help="mode batch, modelled drives: these answer 100 to 500 a second")
    parser.add_argument("--drive", default="solid-state", help="passed on for the real disk: "
                        "auto, rotational, solid-state")
    parser.add_argument("--repetitions", type=int, default=1, help="of a cell; the fastest counts")
    parser.add_argument("--build-only", action="store_true", help="make the archives, no more")
    parser.add_argument("--json", metavar="FILE",
                        help="also write the rows of results.md there")
    parser.add_argument("--label", help="of the machine, for tables and pictures")
    return parser.parse_args(words)


class Sweep:
    def __init__(self, arguments):
        self.arguments = arguments
        program, self.quired = find_programs(arguments.build, "codec_bench", "quired")
        self.loader = Loader(arguments.build)
        codecs = Codecs(program)
        self.text_bytes = arguments.corpus.stat().st_size
        self.out = arguments.out
        (self.out / "archives").mkdir(parents=True, exist_ok=True)
        self.archives = list(archives_of(
            list(dict.fromkeys(map(codecs.canonical, arguments.codecs))), codecs.needs_dictionary,
            arguments.block_sizes, arguments.dictionary_sizes))
        self.csv = self.out / "results.csv"
        self.rows = read_csv(self.csv, COLUMNS, TEXT_COLUMNS)
        self.done = {key_of(row) for row in self.rows}

    def say(self, text):
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)

    def cell(self, device, mode, spec, block_size, dictionary_size):
        """The columns of KEY."""
        arguments = self.arguments
        batch_size = arguments.batch_size if device == "real" else arguments.model_batch_size
        return {"device": device, "mode": mode, "codec": spec, "block_size_bytes": block_size,
                "dictionary_size_bytes": dictionary_size, "text_bytes": self.text_bytes,
                "in_flight": arguments.in_flight if mode == "random" else None,
                "batch_size": batch_size if mode == "batch" else None}

    def cells_of(self, archive):
        return [self.cell(device, mode, *archive)
                for device, modes in self.arguments.devices for mode in modes]

    def archive_name(self, spec, block_size, dictionary_size):
        parts = [self.arguments.corpus.stem, spec.replace(":", "-"), f"{block_size >> 10}K"]
        if dictionary_size:
            parts.append(f"{dictionary_size >> 10}K-{self.arguments.dictionary_method}")
        return "-".join(parts)

    def build(self, spec, block_size, dictionary_size):
        options = ["--codec", spec, "--block-size", f"{block_size}B", "--no-symbol-table"]
        if dictionary_size:
            options += ["--dictionary-size", f"{dictionary_size}B", "--dictionary-method",
                        self.arguments.dictionary_method]
        archive, _ = keep_archive(self.quired, self.arguments.corpus, self.out / "archives",
                                   self.archive_name(spec, block_size, dictionary_size), options)
        return archive

    def serve_flags(self, device):
        if device == "real":
            return ["--direct-io", "auto", "--drive", self.arguments.drive]
        return ["--device-model", device]

    def measure_once(self, archive, cell):
        """The row, complete."""
        arguments = self.arguments
        with cold_server(self.quired, "sweep", archive, *self.serve_flags(cell["device"])) as server:
            run = self.loader.run(server, "sweep", arguments.corpus, cell["mode"],
                                  arguments.seconds, cell["in_flight"] or 1,
                                  cell["batch_size"] or 1)
            sums = metric_sums(server.metrics())
        hits, misses = sums["quire_cache_hits_total"], sums["quire_cache_misses_total"]
        stored = directory_bytes(archive)
        units = (run["requests"] if cell["mode"] != "full" else run["text_bytes"] / RANGE_BYTES)
        return {
            **cell, "stored_bytes": stored,
            "rate_percent": round(100 * stored / self.text_bytes, 4),
            "requests": run["requests"] if cell["mode"] != "full" else None,
            "seconds": round(run["seconds"], 4),
            "ranges_per_second": round(units / run["seconds"], 2),
            "mb_per_second": round(run["text_bytes"] / 1e6 / run["seconds"], 3),
            "p50_ms": run["p50_ms"] if cell["mode"] == "random" else None,
            "p99_ms": run["p99_ms"] if cell["mode"] == "random" else None,
            "cache_hits_percent": round(100 * hits / max(1, hits + misses), 2),
            "device_reads": int(sums["quire_device_reads_total"]),
            "device_read_bytes": int(sums["quire_device_read_bytes_total"])}

    def measure(self, archive, cell):
        row = max((self.measure_once(archive, cell) for _ in range(self.arguments.repetitions)),
                  key=lambda row: row["ranges_per_second"])
        self.rows.append(row)
        self.done.add(key_of(row))
        write_csv(self.csv, self.rows, COLUMNS)
        self.say(f"{cell['device']} {cell['mode']} {cell['codec']}, blocks "
                 f"{format_size(cell['block_size_bytes'])}, dictionary "
                 f"{format_size(cell['dictionary_size_bytes'])}: {row['rate_percent']:.2f} %, "
                 f"{row['ranges_per_second']:,.0f} ranges/s")

    def write(self):
        """What this run was asked for, in its order; other rows stay in the CSV."""
        wanted = [key_of(cell) for archive in self.archives for cell in self.cells_of(archive)]
        by_key = {key_of(row): row for row in self.rows}
        rows = [by_key[key] for key in dict.fromkeys(wanted) if key in by_key]
        if self.arguments.json:
            write_json(self.arguments.json, rows)
        devices = [name for name, _ in self.arguments.devices]
        modes = [mode for mode in MODES if any(row["mode"] == mode for row in rows)]
        machine = self.arguments.label or f"{os.cpu_count()} cores"
        title = f"{self.arguments.corpus.stem}, {self.text_bytes:,} bytes; {machine}"
        pictures = {"modes": sweep_plot.render(rows, title, devices, modes)}
        focused = [row for row in rows if row["mode"] == "random" and row["codec"] != "copy"]
        if focused:
            pictures["random"] = sweep_plot.render(
                focused, f"RANDOM; {title}", list(dict.fromkeys(r["device"] for r in focused)),
                ["random"])
        for name, picture in pictures.items():
            (self.out / f"{name}.svg").write_text(picture, encoding="utf-8")
        pages = {"results.md": markdown_page(rows, title, devices, modes),
                 "results.html": html_page(rows, title, devices, modes, pictures)}
        for name, page in pages.items():
            (self.out / name).write_text(page, encoding="utf-8")

    def run(self):
        arguments = self.arguments
        missing = [archive for archive in self.archives if not (
            self.out / "archives" / f"{self.archive_name(*archive)}.quire").exists()]
        cells = [cell for archive in self.archives for cell in self.cells_of(archive)
                 if key_of(cell) not in self.done]
        count = 0 if arguments.build_only else len(cells) * arguments.repetitions
        seconds = estimate_seconds(count, arguments.seconds, len(missing), self.text_bytes)
        self.say(f"{len(missing)} archives to build, {count} cells to measure: about "
                 f"{seconds / 60:.1f} minutes")
        for archive in self.archives:
            path = self.build(*archive)
            for cell in [] if arguments.build_only else self.cells_of(archive):
                if key_of(cell) not in self.done:
                    self.measure(path, cell)
        if self.rows:
            self.write()
            self.say(f"{self.out}: results.csv, .md, .html, modes.svg, random.svg")


if __name__ == "__main__":
    try:
        Sweep(parse_arguments()).run()
    except (subprocess.CalledProcessError, RuntimeError, ValueError) as error:
        sys.exit(f"sweep.py: {error}")
