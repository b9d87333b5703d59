#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints table 1 of "FSST: Fast Random Access String Compression" and its average speeds next to
the same measurements here, on a directory of the paper's columns.

    loadtest/papers/paper_fsst.py /data/columns

Runs testing/codecs/fsst_benchmark once for each file, repeated to 8 MiB there. Times are CPU
time on one thread, the best of several runs in random order, so that other load on the
machine matters little. The columns are in paper/dbtext of github.com/cwida/fsst.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import make_parser
from live_server import make_documents
from markdown_table import markdown

TEXT_SIZE_BYTES = 8 << 20
# Column -> factors of LZ4 and FSST.
TABLE_1 = {
    "hex": (1.14, 2.11), "yago": (1.25, 1.63), "email": (1.55, 2.13), "wiki": (1.31, 1.63),
    "uuid": (1.55, 2.44), "urls2": (1.75, 2.05), "urls": (2.77, 2.42), "firstname": (1.25, 2.04),
    "lastname": (1.28, 1.97), "city": (1.37, 2.14), "credentials": (1.48, 2.31),
    "street": (1.60, 2.35), "movies": (1.23, 1.66), "faust": (1.48, 1.87), "hamlet": (2.13, 2.41),
    "chinese": (1.40, 1.69), "japanese": (1.84, 2.00), "wikipedia": (1.45, 1.81),
    "genome": (1.59, 3.32), "location": (1.58, 2.51), "c_name": (3.08, 3.80),
    "l_comment": (2.22, 2.90), "ps_comment": (2.79, 3.40)}
ENCODE, HIGH, DECODE, LINES = ("BM_Encode/default", "BM_Encode/high", "BM_Decode/best",
                               "BM_DecodeLines/best")
PLAIN, ALGORITHM_1 = "BM_Decode/plain", "BM_DecodePlain"
LZ4_ENCODE, LZ4_DECODE = "BM_Lz4Encode", "BM_Lz4Decode"
NAMES = (ENCODE, HIGH, DECODE, LINES, PLAIN, ALGORITHM_1, LZ4_ENCODE, LZ4_DECODE)


def parse_arguments():
    parser = make_parser(__doc__, "testing/codecs/fsst_benchmark")
    parser.add_argument("directory", type=pathlib.Path, nargs="?", help="each file is a column")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.02, help="at least, for each")
    parser.add_argument("--smoke", action="store_true", help="one generated column, briefly")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.directory and not arguments.smoke:
        parser.error("DIRECTORY is required, unless --smoke is given")
    return arguments


def measure(arguments, path):
    """Returns benchmark -> {factor, speed} of its fastest run; speed in MB/s of text."""
    pattern = "^(" + "|".join(map(re.escape, NAMES)) + ")$"
    printed = json.loads(subprocess.run(
        [arguments.build / "testing/codecs/fsst_benchmark", "--benchmark_format=json",
         f"--benchmark_filter={pattern}", f"--benchmark_repetitions={arguments.repetitions}",
         f"--benchmark_min_time={arguments.seconds}",
         "--benchmark_enable_random_interleaving=true"],
        env={**os.environ, "QUIRE_BENCHMARK_FILE": str(path)}, check=True,
        stdout=subprocess.PIPE).stdout)
    best = {}
    for run in printed["benchmarks"]:
        if run.get("error_occurred"):
            sys.exit(f"paper_fsst.py: {path}: {run['name']}: {run.get('error_message')}")
        if run.get("run_type") != "aggregate":
            # Times are in nanoseconds.
            found = {"factor": run.get("factor"), "speed": TEXT_SIZE_BYTES / run["cpu_time"] * 1e3}
            name = run["run_name"]
            best[name] = max(best.get(name, found), found, key=lambda each: each["speed"])
    return {name: best[name] for name in NAMES}


def factors(lz4, fsst, high=None):
    return f"{lz4:.2f} / {fsst:.2f}" + (f" / {high:.2f}" if high else "")


def rows_of(columns):
    def mean(name, what):
        return sum(each[name][what] for each in columns.values()) / len(columns)

    def speeds(*names):
        return " / ".join(f"{mean(name, 'speed'):,.0f}" for name in names)

    rows = [[f"{column}: factor of LZ4 / FSST / level high",
             factors(*TABLE_1[column]) if column in TABLE_1 else "-",
             factors(each[LZ4_ENCODE]["factor"], each[ENCODE]["factor"], each[HIGH]["factor"])]
            for column, each in columns.items()]
    known = [TABLE_1[column] for column in columns if column in TABLE_1]
    rows.append(["**mean**: factor of LZ4 / FSST / level high",
                 factors(*(sum(each) / len(known) for each in zip(*known))) if known else "-",
                 factors(*(mean(name, "factor") for name in (LZ4_ENCODE, ENCODE, HIGH)))])
    rows.append(["encoding, FSST as a multiple of LZ4", "1.58",
                 f"{mean(ENCODE, 'speed') / mean(LZ4_ENCODE, 'speed'):.2f}"])
    rows.append(["decoding, FSST as a multiple of LZ4", "1.01",
                 f"{mean(DECODE, 'speed') / mean(LZ4_DECODE, 'speed'):.2f}"])
    rows.append(["encoding, MB/s: LZ4 / FSST", "-", speeds(LZ4_ENCODE, ENCODE)])
    rows.append(["decoding, MB/s: LZ4 / Algorithm 1 / FSST without AVX-512 / FSST / FSST, each "
                 "line a string", "-", speeds(LZ4_DECODE, ALGORITHM_1, PLAIN, DECODE, LINES)])
    return rows


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as directory:
        if arguments.smoke:
            arguments.directory, arguments.repetitions = pathlib.Path(directory), 1
            (arguments.directory / "city").write_bytes(
                b"\n".join(text[:20] for _, text in make_documents(100, seed=3)))
        files = sorted(path for path in arguments.directory.iterdir() if path.is_file())
        if not files:
            sys.exit(f"paper_fsst.py: {arguments.directory}: no files")
        rows = rows_of({path.name: measure(arguments, path) for path in files})
    print_figures(arguments, rows, markdown(["what", "paper", "here"], rows))


if __name__ == "__main__":
    main()
