#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares reads of archives that a plain `quired build` makes with those of archives without
reordering and inflating, with the least --memory that starts and with plenty.

usage: plain_reads.py [--smoke] [--seconds N] [--rounds N] [--build DIR] COLLECTION...

COLLECTION is a directory (plain_collections.py makes some). Calls of 16 KiB have 64 in flight, the
client shares the cores. Figures are medians of rounds in turns: plain, off. Refused calls are those
of the calls of 16 KiB, all rounds together.
"""
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import AS_IT_IS, build_archive, find_programs, make_parser
from disk_runs import Loader, least_memory
from live_server import LiveServer
from markdown_table import format_number, markdown
from plain_build import make_small

BUILDS = {"plain": (), "off": AS_IT_IS}
PLENTY = "1GiB"
RUNS = {
    "ranges/s": ("--range-size", "16KiB", "--in-flight", 64),
    "documents/s": ("--what", "documents", "--in-flight", 64),
    "batch/s": ("--mode", "batch", "--batch-size", 10_000),
    "scan MB/s": ("--mode", "full"),
    "stored scan MB/s": ("--mode", "full", "--encoding", "stored"),
}


def measure(loader, quired, archive, memory, seconds):
    """Returns {figure: value} of one server."""
    found = {}
    with LiveServer(str(quired), [f"web={archive}"], "--memory", memory) as server:
        for figure, options in RUNS.items():
            report = loader.report(["web", "--server", server.address, *options, "--duration",
                                    seconds], counts_errors=True)
            if report["wrong"]:
                raise RuntimeError(f"{archive}: {report['wrong']} wrong answers: {report['faults']}")
            scans = "MB/s" in figure
            found[figure] = (report["text_bytes"] / 1e6 if scans else report["right"]) / report["seconds"]
            if figure == "ranges/s":
                found["p99 ms"] = report["latency_ms"]["p99"]
                found["refused"] = report["errors"] + report["retries"]
    return found


def merged(rounds):
    """Medians of rounds; refused calls are added."""
    return {name: (sum if name == "refused" else statistics.median)(each[name] for each in rounds)
            for name in rounds[0]}


def compare(loader, quired, collection, directory, arguments):
    """Returns the rows of a collection."""
    archives = {}
    for name, options in BUILDS.items():
        archives[name] = directory / f"{collection.name}-{name}.quire"
        build_archive(quired, archives[name], [collection], options)
    rows = []
    for memory in ("least", PLENTY):
        rounds = {name: [] for name in BUILDS}
        for _ in range(arguments.rounds):
            for name, archive in archives.items():
                size = f"{least_memory(quired, archive)}B" if memory == "least" else memory
                rounds[name].append(measure(loader, quired, archive, size, arguments.seconds))
        found = {name: merged(each) for name, each in rounds.items()}
        rows.append([collection.name, memory] + [
            " / ".join(format_number(each[figure], 1 if figure == "p99 ms" else 0) for each in found.values())
            for figure in found["plain"]])
    return rows


def main():
    parser = make_parser(__doc__, "quired", "quire-loadtest")
    parser.add_argument("collections", metavar="COLLECTION", type=pathlib.Path, nargs="*")
    parser.add_argument("--seconds", type=float, default=5, help="of a run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--smoke", action="store_true", help="small generated texts, for tests")
    add_json_option(parser)
    arguments = parser.parse_args()
    quired, = find_programs(arguments.build, "quired")
    loader = Loader(arguments.build)
    rows = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        directory = pathlib.Path(scratch)
        if arguments.smoke:
            (directory / "small").mkdir()
            arguments.collections = make_small(directory / "small")[:1]
            arguments.seconds, arguments.rounds = 0.2, 1
        for collection in arguments.collections:
            rows += compare(loader, quired, collection.resolve(), directory, arguments)
    header = ["collection", "--memory", *RUNS]
    header[3:3] = ["p99 ms", "refused"]
    print_figures(arguments, rows, markdown(header, rows))


if __name__ == "__main__":
    main()
