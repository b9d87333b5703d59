#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures archives that grow: look-ups among many segments, joining segments compared with
encoding them, reads during a scrub, and a year of nightly appends (soak/growing_archive.py).

Look-ups are those of document_index_benchmark, medians of rounds. Joining is the processor time that
`quired append --merge auto` takes more than `--merge off`, with all parts of a generated
text in segments of their own; encoding is that append without joining, on one thread.

Reads during a scrub are ranges of 16 KiB at 20 a second from a modelled hard disk, without and
with `--scrub-interval`, in turns; latencies count from the time that a request is due.
"""
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "harness"), str(HERE.parent / "soak")]
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import AS_IT_IS, build_archive, find_programs, make_parser
from disk_runs import MODELLED_DISK, Loader, cold_server, metric_sums
from growing_archive import table_rows
from live_server import make_documents, run_measured, write_corpus
from markdown_table import format_number, markdown

PART_COUNT = 8
FULL = ("--benchmark_filter=FindInSegments",)
SMOKE = ("--benchmark_filter=FindInSegments/1$", "--benchmark_min_time=0.001")


def measure_lookups(benchmark, rounds, options):
    """Returns {segments: (microseconds, bits per document of ids, and of their filters)}."""
    output = subprocess.run(
        [benchmark, f"--benchmark_repetitions={rounds}",
         "--benchmark_report_aggregates_only=true", "--benchmark_format=json", *options],
        check=True, stdout=subprocess.PIPE).stdout
    return {int(run["run_name"].split("/")[1]): (run["cpu_time"] / 1000, run["bits_ids"],
                                                  run["bits_filters"])
            for run in json.loads(output)["benchmarks"] if run["aggregate_name"] == "median"}


def measure_joining(quired, directory, documents_per_part, codec, rounds):
    """Returns (MB/s of encoding, MB/s of joining), of the text."""
    base = directory / f"base-{codec.replace(':', '-')}"
    sizes = []
    for part in range(PART_COUNT):
        documents = make_documents(documents_per_part, seed=1)
        # Parts of the same words, in another order.
        documents = [(f"{part}/{name}", text[part * 7:] + text[:part * 7])
                     for name, text in documents]
        write_corpus(documents, directory / f"part-{part}")
        sizes.append(sum(len(text) for _, text in documents))
    build_archive(quired, base, [directory / "part-0.tar"],
                  ["--codec", codec, *(["--dictionary-size", "1MiB"] if codec == "rlz" else []),
                   *AS_IT_IS])
    for part in range(1, PART_COUNT - 1):
        run_measured([quired, "append", "--quiet", "--merge", "off", base,
                      directory / f"part-{part}.tar"])
    times = {"off": [], "auto": []}
    for _ in range(rounds):
        for merge, cpu_seconds in times.items():
            grown = directory / "grown"
            shutil.copytree(base, grown)
            cpu_seconds.append(run_measured(
                [quired, "append", "--quiet", "--threads", "1", "--merge", merge, grown,
                 directory / f"part-{PART_COUNT - 1}.tar"])[1])
            shutil.rmtree(grown)
    encoding = statistics.median(times["off"])
    joining = max(1e-3, statistics.median(times["auto"]) - encoding)
    return sizes[-1] / encoding / 1e6, sum(sizes) / joining / 1e6


def measure_scrubbing(build, quired, directory, document_count, seconds):
    """Returns {"off": p99 in ms, "on": p99 in ms, "mb_per_second": of the scrub}: medians."""
    write_corpus(make_documents(document_count, seed=5), directory / "scrubbed")
    archive = directory / "scrubbed.quire"
    build_archive(quired, archive, [directory / "scrubbed.tar"], ["--codec", "copy", *AS_IT_IS])
    loader = Loader(build)
    p99 = {"off": [], "on": []}
    rates = []
    for turn in range(4):
        mode = ("off", "on")[turn % 2]
        options = ["--scrub-interval", "1s"] if mode == "on" else []
        with cold_server(quired, "web", archive, *options,
                         command=MODELLED_DISK) as server:
            report = loader.report([
                "web", "--server", server.address, "--source", directory / "scrubbed.raw",
                "--range-size", "16KiB", "--seed", turn // 2, "--rate", 20, "--duration", seconds])
            p99[mode].append(report["latency_ms"]["p99"])
            if mode == "on":
                scrubbed = metric_sums(server.metrics())["quire_scrubbed_bytes_total"]
                rates.append(scrubbed / report["seconds"] / 1e6)
    return {**{mode: statistics.median(found) for mode, found in p99.items()},
            "mb_per_second": statistics.median(rates)}


def rows_of(figures):
    rows = []
    for segments, (microseconds, ids, filters) in figures["lookups"].items():
        rows.append((f"look-up by id, 150,000 documents in {segments} segments",
                     f"{microseconds:.1f} µs; {ids:.1f} bits of ids per document, filters "
                     f"{filters:.1f} ({filters / ids:+.1%})"))
    for codec, (encoding, joining) in figures["joining"].items():
        rows.append((f"{codec}: encoding / joining segments, one thread",
                     f"{format_number(encoding)} / {format_number(joining)} MB/s"))
    scrub = figures["scrubbing"]
    rows.append((f"p99 of reads from a modelled disk, without / during a scrub of "
                 f"{scrub['mb_per_second']:.1f} MB/s", f"{scrub['off']:.1f} / {scrub['on']:.1f} ms"))
    return rows + table_rows(figures["year"])


def main():
    parser = make_parser(__doc__, "quired, and document_index_benchmark")
    parser.add_argument("--days", type=int, default=365, metavar="N",
                        help="nights to append (default: %(default)s)")
    parser.add_argument("--year", metavar="FILE", type=pathlib.Path,
                        help="figures of an earlier growing_archive.py --json FILE, instead of "
                        "running it")
    parser.add_argument("--smoke", action="store_true", help="small texts and few nights: for tests")
    add_json_option(parser)
    arguments = parser.parse_args()
    quired, = find_programs(arguments.build, "quired")
    benchmark = arguments.build / "testing/archive/document_index_benchmark"
    if not benchmark.is_file():
        sys.exit(f"no {benchmark}; build it first: cmake --build {arguments.build} --target "
                 f"{benchmark.name}")
    rounds = 2 if arguments.smoke else 5
    days = 4 if arguments.smoke else arguments.days
    figures = {"lookups": {str(segments): figure for segments, figure in
                           measure_lookups(benchmark, rounds,
                                           SMOKE if arguments.smoke else FULL).items()}}
    with tempfile.TemporaryDirectory(prefix="quire-growth-") as scratch:
        directory = pathlib.Path(scratch)
        figures["joining"] = {
            codec: measure_joining(quired, directory, 40 if arguments.smoke else 400, codec, rounds)
            for codec in ("rlz", "zstd")}
        figures["scrubbing"] = measure_scrubbing(
            arguments.build, quired, directory, 20 if arguments.smoke else 6_000,
            0.5 if arguments.smoke else 60)
        year = arguments.year or directory / "year.json"
        if arguments.year is None:
            subprocess.run(
                [sys.executable, HERE.parent / "soak/growing_archive.py", "--build", arguments.build,
                 "--days", str(days), "--sample-every", "2" if arguments.smoke else "5", "--json",
                 year], check=True, stdout=sys.stderr)
        figures["year"] = json.loads(year.read_text())
    print_figures(arguments, figures, markdown(("what", "figure"), rows_of(figures)))


if __name__ == "__main__":
    main()
