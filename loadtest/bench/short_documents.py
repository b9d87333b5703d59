#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures size, build speed and random reads of short documents, the lines of the files in
a directory, in Quire and in string columns of DuckDB and Lance.

    loadtest/bench/short_documents.py --columns /data/columns --modules /data/modules

Sizes are those of all files. Speeds are for one core's CPU time, with the files in the
page cache. Quire serves the lines over gRPC, and the server's time counts: with the least
--memory, so that most batches decode every block, and with 64 MiB more, which hold the
text. The others run in one process with their reader, and cache what they like. All read
2,000 lines at a time, and every line is compared with the text first. Omits the peers
without --modules, a directory with them: `pip install --target DIR -r python_peers.txt`.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, machine_load, make_parser
from disk_runs import directory_bytes, least_memory
from live_server import LiveServer, run_measured
from markdown_table import format_number, markdown

PROGRAMS = ("quired", "quire-loadtest")
PYTHON_PEERS = pathlib.Path(__file__).with_name("python_peers.py")
# Options of `quired build` -> row.
BUILDS = {"": "Quire, a plain `quired build`",
          "--objective=archive": "Quire, `--objective archive`",
          "--objective=speed": "Quire, `--objective speed`"}
PEERS = {"duckdb": "DuckDB", "lance": "Lance", "lance-zstd": "Lance, `zstd`"}
BATCH_SIZE = 2_000
# In bytes, above the least.
MEMORY_MORE = (0, 64 << 20)


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--columns", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--modules", metavar="DIR", type=pathlib.Path,
                        help="Python modules of the peers")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each timed round")
    parser.add_argument("--smoke", action="store_true", help="a few generated lines, briefly")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.columns and not arguments.smoke:
        parser.error("--columns is required, unless --smoke is given")
    return arguments


def write_lines(columns, directory):
    """Writes (text, index) in `directory`: all lines, with their ids in an archive."""
    text, index = directory / "lines.raw", directory / "lines.tsv"
    offset = 0
    with open(text, "wb") as raw, open(index, "w", encoding="utf-8") as out:
        for path in sorted(columns.iterdir()):
            for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
                raw.write(line)
                out.write(f"{offset}\t{len(line)}\t{path.name}:{number}\n")
                offset += len(line)
    return text, index


class Bench:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.quired, self.loadtest = find_programs(arguments.build, *PROGRAMS)
        self.columns = arguments.columns
        if arguments.smoke:
            arguments.seconds = 0.001
            self.columns = directory / "columns"
            self.columns.mkdir()
            for name in ("a", "b"):
                (self.columns / name).write_text(
                    "".join(f"line {number} of {name}\n" for number in range(3_000)))
        self.text, self.index = write_lines(self.columns, directory)

    def build(self, options):
        """Returns (stored bytes, CPU seconds, rates); rates are lines read per CPU second of
        the server, by memory."""
        archive = self.directory / f"lines-{list(BUILDS).index(options)}.quire"
        cpu = run_measured([self.quired, "build", "--quiet", "--split", "lines", *options.split(),
                            "-o", archive, self.columns])[1]
        return directory_bytes(archive), cpu, [self.serve(archive, more) for more in MEMORY_MORE]

    def serve(self, archive, memory_more):
        """Returns the lines read per CPU second of a server."""
        with LiveServer(self.quired, [f"lines={archive}"], "--memory",
                        f"{least_memory(self.quired, archive) + memory_more}B") as server:
            self.read(server, ["--mode", "full"])
            batches = max(1, int(200 * self.arguments.seconds))
            random = ["--index", self.index, "--what", "documents", "--mode", "batch",
                      "--batch-size", BATCH_SIZE]
            self.read(server, [*random, "--requests", BATCH_SIZE])
            before = server.cpu_seconds()
            report = self.read(server, [*random, "--requests", batches * BATCH_SIZE])
            return report["right"] / (server.cpu_seconds() - before)

    def read(self, server, options):
        """Reads and compares; returns the report."""
        return json.loads(run_measured([
            self.loadtest, "lines", "--json", "--server", server.address, "--source", self.text,
            *options])[3])

    def peer(self, name):
        printed = run_measured([
            "env", f"PYTHONPATH={self.arguments.modules.resolve()}", "/usr/bin/python3",
            PYTHON_PEERS, name, self.text, self.index, self.directory / name,
            self.arguments.seconds])[3]
        # Libraries print to standard output as well; the last line is ours.
        found = json.loads(printed.splitlines()[-1])
        return found["stored_bytes"], found["build_cpu_seconds"], [found["reads_per_second"]]

    def run(self):
        rows = {form: self.build(options) for options, form in BUILDS.items()}
        if self.arguments.modules is not None:
            rows.update({form: self.peer(name) for name, form in PEERS.items()})
        size = self.text.stat().st_size
        with open(self.index, encoding="utf-8") as lines:
            count = sum(1 for _ in lines)
        return {form: {"lines": count, "text_bytes": size, "stored_bytes": stored,
                       "build_mb_per_second": size / 1e6 / max(cpu, 1e-3),
                       "reads_per_second": rates} for form, (stored, cpu, rates) in rows.items()}


def table(rows):
    """Returns lines of text and Markdown."""
    return [machine_load(), "", *markdown(["what", "figure"], [
        [f"{row['lines']:,} lines of {row['text_bytes'] / row['lines']:.0f} bytes: {form}",
         f"{100 * row['stored_bytes'] / row['text_bytes']:.2f} %, built at "
         f"{format_number(row['build_mb_per_second'], 1)} MB/s, "
         + " and ".join(format_number(rate) for rate in row["reads_per_second"]) + " lines/s"]
        for form, row in rows.items()])]


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        rows = Bench(arguments, pathlib.Path(directory)).run()
    print_figures(arguments, rows, table(rows))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"short_documents.py: {error}")
