#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""FSST compared with LZ4 and zstd on a directory of columns of strings, as a table.

Runs codecs/fsst/fsst_benchmark once for each file of the directory, repeated to
8 MiB there; prints Markdown. Lines as strings of their own have a table that
was trained on lines. Times are CPU time on one thread, the best of
several runs in random order, so that what else the machine does matters little;
compare only figures of one table.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from bench_json import add_json_option, print_figures
from codec_table import markdown

TEXT_SIZE_BYTES = 8 << 20

# (heading, benchmark, value): MB/s, compression factor, or milliseconds.
COLUMNS = [
    ("factor", "BM_Encode/default", "factor"),
    ("factor high", "BM_Encode/high", "factor"),
    ("train ms", "BM_Train/default", "ms"),
    ("train ms high", "BM_Train/high", "ms"),
    ("encode", "BM_Encode/default", "speed"),
    ("encode high", "BM_Encode/high", "speed"),
    ("encode lines", "BM_EncodeLines", "speed"),
    ("decode", "BM_Decode/best", "speed"),
    ("decode, any machine", "BM_Decode/plain", "speed"),
    ("decode lines", "BM_DecodeLines/best", "speed"),
    ("decode lines, any machine", "BM_DecodeLines/plain", "speed"),
    ("Algorithm 1", "BM_DecodePlain", "speed"),
    ("LZ4 factor", "BM_Lz4Encode", "factor"),
    ("LZ4 encode", "BM_Lz4Encode", "speed"),
    ("LZ4 decode", "BM_Lz4Decode", "speed"),
    ("LZ4 lines factor", "BM_Lz4EncodeLines", "factor"),
    ("LZ4 lines encode", "BM_Lz4EncodeLines", "speed"),
    ("LZ4 lines decode", "BM_Lz4DecodeLines", "speed"),
    ("zstd -1 factor", "BM_ZstdEncode", "factor"),
    ("zstd -1 encode", "BM_ZstdEncode", "speed"),
    ("zstd -1 decode", "BM_ZstdDecode", "speed"),
]
# Of averages: (what, above, below).
RATIOS = [
    ("decode / Algorithm 1", "decode", "Algorithm 1"),
    ("decode on any machine / Algorithm 1", "decode, any machine", "Algorithm 1"),
    ("decode lines / Algorithm 1 on the whole column", "decode lines", "Algorithm 1"),
    ("encode / LZ4 encode", "encode", "LZ4 encode"),
    ("encode lines / LZ4 encode", "encode lines", "LZ4 encode"),
]


def best_of(report):
    """Benchmark -> what COLUMNS may ask of it, from Google Benchmark's JSON."""
    best = {}
    for run in report["benchmarks"]:
        if run.get("error_occurred"):
            sys.exit(f"{run['name']}: {run.get('error_message')}")
        if run.get("run_type") == "aggregate":
            continue
        name = run["run_name"]
        if name not in best or run["cpu_time"] < best[name]["cpu_time"]:
            best[name] = run
    # Times are in nanoseconds.
    return {name: {"factor": run.get("factor"), "ms": run["cpu_time"] / 1e6,
                   "speed": TEXT_SIZE_BYTES / run["cpu_time"] * 1e3}
            for name, run in best.items()}


def measure(binary, path, repetitions, seconds):
    output = subprocess.run(
        [binary, "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
         f"--benchmark_min_time={seconds}", "--benchmark_enable_random_interleaving=true"],
        env={**os.environ, "QUIRE_BENCHMARK_FILE": str(path)},
        check=True, stdout=subprocess.PIPE).stdout
    best = best_of(json.loads(output))
    return {heading: best[name][value] for heading, name, value in COLUMNS}


def cells(name, values):
    return [name, *(f"{values[heading]:.{ {'factor': 3, 'ms': 2, 'speed': 0}[value]}f}"
                    for heading, _, value in COLUMNS)]


def average_of(rows):
    """The mean of each heading over the columns of strings."""
    return {heading: sum(values[heading] for values in rows.values()) / len(rows)
            for heading, _, _ in COLUMNS}


def tables(rows):
    """Markdown lines."""
    average = average_of(rows)
    return ["Speeds in MB/s (10^6 bytes of text).", "",
            *markdown(["column", *(heading for heading, _, _ in COLUMNS)],
                      [*(cells(name, values) for name, values in rows.items()),
                       cells("**average**", average)]), "",
            *(f"- {what}: {average[above] / average[below]:.2f}" for what, above, below in RATIOS)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="each file is a column")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="at least, for each")
    add_json_option(parser)
    return parser.parse_args()


def main():
    options = parse_arguments()
    binary = options.build / "codecs/fsst/fsst_benchmark"
    files = sorted(path for path in options.directory.iterdir() if path.is_file())
    if not files:
        sys.exit(f"fsst_bench.py: no files in {options.directory}")
    rows = {}
    for path in files:
        rows[path.name] = measure(binary, path, options.repetitions, options.seconds)
        print(path.name, file=sys.stderr, flush=True)
    print_figures(options, rows, tables(rows))


if __name__ == "__main__":
    main()
