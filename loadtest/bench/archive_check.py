#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds an archive of a corpus, serves it, reads all of it back, and prints whether the
bytes are right, and the figures of RESULTS.md.

The corpus is three files: STEM.tar, STEM.raw (the same documents concatenated) and
STEM.tsv (offset, size and id of each). Without --corpus a small one is generated.

Fails if: the scan's SHA-256 is not that of STEM.raw; any of the random documents or
ranges differs from the source; the server's resident memory ever exceeds --memory;
`quired verify` finds damage; or the server does not drain on SIGTERM.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from markdown_table import markdown
from live_server import LiveServer, make_documents, parse_size, run_measured, write_corpus

# Passed to `quired build`.
PROGRAMS = ("quired", "quire", "quire-loadtest")
BUILD_OPTIONS = ("codec", "block-size", "dictionary-size", "dictionary-method")


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--corpus", metavar="STEM", help="path without .tar, .raw, .tsv")
    parser.add_argument("--directory", type=pathlib.Path,
                        help="keep the archive here (default: a temporary directory)")
    for option in BUILD_OPTIONS:
        parser.add_argument(f"--{option}", help="of the archive (default: what quired takes)")
    parser.add_argument("--memory", default="512MiB", help="of the server")
    parser.add_argument("--requests", type=int, default=10_000, help="of each kind")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--range-size", default="16KiB")
    parser.add_argument("--seed", type=int, default=20261121)
    add_json_option(parser)
    return parser.parse_args()


def sha256_of_file(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_command(command):
    """Returns (seconds, digest of the output)."""
    digest = hashlib.sha256()
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while chunk := process.stdout.read(1 << 20):
            digest.update(chunk)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return time.monotonic() - started, digest.hexdigest()


class Check:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.quired, self.quire, self.loadtest = find_programs(arguments.build, *PROGRAMS)
        self.stem = arguments.corpus or f"{directory}/generated"
        self.archive = directory / "check.quire"
        self.figures = {}
        self.faults = []

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def require(self, truth, fault):
        if not truth:
            self.faults.append(fault)
            self.say(f"FAULT: {fault}")

    def build(self):
        arguments = self.arguments
        raw_size = pathlib.Path(f"{self.stem}.raw").stat().st_size
        self.say(f"building {self.archive} of {self.stem}.tar ({raw_size:,} bytes of text)")
        command = [self.quired, "build", "-o", self.archive]
        for option in BUILD_OPTIONS:
            value = getattr(arguments, option.replace("-", "_"))
            command += [f"--{option}", value] if value else []
        seconds, cpu, peak, _ = run_measured([*command, f"{self.stem}.tar"])
        stored = sum(f.stat().st_size for f in self.archive.rglob("*") if f.is_file())
        self.figures["build"] = {
            "text_bytes": raw_size, "stored_bytes": stored,
            "stored_percent": round(100 * stored / raw_size, 3), "seconds": round(seconds, 2),
            "megabytes_per_second": round(raw_size / 1e6 / seconds, 1),
            "cpu_seconds": round(cpu, 2), "resident_peak_bytes": peak}
        inspection = json.loads(run_measured([self.quired, "inspect", "--json", self.archive])[3])
        self.figures["inspect"] = inspection
        self.figures["build"]["documents_per_second"] = round(
            inspection["document_count"] / seconds, 1)
        seconds, _, _, _ = run_measured([self.quired, "verify", self.archive])
        self.figures["verify"] = {"seconds": round(seconds, 2),
                                  "megabytes_per_second": round(raw_size / 1e6 / seconds, 1)}

    def load(self, server, what):
        arguments = self.arguments
        command = [self.loadtest, "check", "--server", server.address, "--source",
                   f"{self.stem}.raw", "--index", f"{self.stem}.tsv", "--what", what,
                   "--requests", arguments.requests, "--in-flight", arguments.in_flight,
                   "--range-size", arguments.range_size, "--seed", arguments.seed, "--json"]
        result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                                text=True, check=False)
        if not result.stdout:
            sys.exit(f"quire-loadtest: exit code {result.returncode}")
        report = json.loads(result.stdout)
        self.require(report["right"] == arguments.requests,
                     f"{what}: {report['right']} of {arguments.requests} answers are right")
        self.figures[what] = report
        self.say(f"{what}: {report['right']:,} right, {report['requests_per_second']:,.0f}/s, p50 "
                 f"{report['latency_ms']['p50']} ms, p99 {report['latency_ms']['p99']} ms")

    def serve(self):
        arguments = self.arguments
        with LiveServer(self.quired, [f"check={self.archive}"], "--memory",
                        arguments.memory) as server:
            self.say("".join(server.messages).rstrip())
            at_start = server.resident_bytes()
            # The scan comes last: the cache is full by then.
            for what in ("documents", "ranges"):
                self.load(server, what)
            after_random = server.resident_peak_bytes()
            seconds, digest = sha256_of_command(
                [self.quire, "--server", server.address, "scan", "check"])
            same = digest == sha256_of_file(f"{self.stem}.raw")
            self.require(same, "the scan's SHA-256 is not the source's")
            size = self.figures["build"]["text_bytes"]
            self.figures["scan"] = {
                "seconds": round(seconds, 2), "sha256": digest, "sha256_equal": same,
                "megabytes_per_second": round(size / 1e6 / seconds, 1)}
            self.say(f"scan: SHA-256 {'equal' if same else 'DIFFERENT'}, "
                     f"{size / 1e6 / seconds:,.0f} MB/s")
            peak, limit = server.resident_peak_bytes(), parse_size(arguments.memory)
            self.require(peak < limit, f"resident memory reached {peak:,} of {limit:,} bytes")
            self.figures["memory"] = {
                "limit_bytes": limit, "resident_at_start_bytes": at_start,
                "resident_peak_random_bytes": after_random, "resident_peak_bytes": peak,
                "metrics": [line for line in server.metrics().splitlines()
                            if line.startswith("quire_archive_memory_bytes")]}
            self.say(f"memory: at most {peak:,} of {limit:,} bytes resident")


def table(figures):
    """Returns Markdown lines."""
    build, memory = figures["build"], figures["memory"]
    inspection = figures["inspect"]
    rows = [
        ("codec", f"{inspection['codec']}, blocks of {inspection['block_size_bytes']:,} bytes"),
        ("archive, all files", f"{build['stored_bytes']:,} bytes, {build['stored_percent']} % of "
         f"{build['text_bytes']:,} bytes in {inspection['document_count']:,} documents"),
        ("build", f"{build['megabytes_per_second']} MB/s, "
                  f"{build['documents_per_second']:,.0f} documents/s ({build['seconds']} s, "
                  f"{build['cpu_seconds']} s of CPU, {build['resident_peak_bytes'] >> 20} MiB)"),
        ("verify", f"{figures['verify']['megabytes_per_second']} MB/s"),
        ("scan", f"{figures['scan']['megabytes_per_second']} MB/s, SHA-256 "
                 + ("equal" if figures["scan"]["sha256_equal"] else "DIFFERENT")),
    ]
    for what in ("documents", "ranges"):
        report, latency = figures[what], figures[what]["latency_ms"]
        rows.append((f"random {what}", f"{report['right']:,} of {report['requests']:,} right, "
                     f"{report['requests_per_second']:,.0f}/s, p50 {latency['p50']} ms, "
                     f"p99 {latency['p99']} ms"))
    rows.append(("resident memory", f"{memory['resident_at_start_bytes'] >> 20} MiB at start, "
                 f"{memory['resident_peak_bytes'] >> 20} MiB at most, "
                 f"--memory {memory['limit_bytes'] >> 20} MiB"))
    ram, blocks = inspection["memory"], inspection["block_count"]
    documents = inspection["document_count"]
    for part, unit, count in (("block_index", "block", blocks),
                              ("document_starts", "document", documents),
                              ("document_ids", "document", documents),
                              ("document_attributes", "document", documents)):
        size = ram[f"{part}_bytes"]
        rows.append((f"RAM: {part.replace('_', ' ')}",
                     f"{size:,} bytes, {8 * size / max(1, count):.1f} bits a {unit}"))
    rows.append(("RAM: dictionary", f"{ram['dictionary_bytes']:,} bytes"))
    rows.append(("RAM: all of the archive", f"{ram['total_bytes']:,} bytes"))
    return markdown(["what", "figure"], rows)


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.directory or pathlib.Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        check = Check(arguments, directory)
        if not arguments.corpus:
            write_corpus(make_documents(400, arguments.seed), check.stem)
        check.build()
        check.serve()
    print_figures(arguments, check.figures, table(check.figures))
    if check.faults:
        sys.exit("\n".join(["archive_check: FAILED", *check.faults]))


if __name__ == "__main__":
    main()
