#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a real server on a modelled hard disk in real time, and compares it with
`disk_figures` for the same extent in virtual time: random reads of 16 KiB in closed
loop with 1 to 1,024 in flight, in open loop at 50 to 120 % of the rate with 256 in
flight, and at three times that.

    loadtest/bench/live_disk.py --build build/release

The archive is generated from words, and takes about a quarter of --text on the disk.
Its blocks take about 16 KiB each, and one range in four touches two, like the reads of
`disk_figures`. The server has the smallest possible cache, which is empty.

Overload must leave the server bounded: at three times the load it refuses requests that
exceed --memory, with a time to retry, and admitted ones wait no longer than that memory
takes to serve. `refused` counts refusals, perhaps several of one call: quire-loadtest
retries at the given time, and gives up after 30 s. `admitted` is the duration of served
calls in the server, up to the next bound of its histogram; the other times are the
client's, from a call's due time. Ends within four minutes.
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, make_parser
from markdown_table import markdown
from disk_runs import RANGE_BYTES, cold_server, metric_sums, segment_files
from live_server import error_of, make_stubs, parse_size

PROGRAMS = ("quired", "quire-loadtest", "disk_figures")
ARCHIVE = "bench"
BLOCK_SIZE = "64KiB"
# One text, read under many names.
TEXT_FILE_BYTES = 64 << 20
WORDS = 60
CLOSED = (1, 16, 64, 256, 1024)
OPEN_PERCENTS = (50, 80, 95, 120)
OVERLOAD_PERCENT = 300
REFERENCE = 256
CONNECTIONS = 4
POLL_SECONDS = 0.2
PROBES = 20


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--text", type=parse_size, default=4 << 30, help="size of the text")
    parser.add_argument("--device-model", default="wd-red",
                        help="of quired serve; disk_figures knows wd-red alone")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--smoke", action="store_true",
                        help="a small text and a moment of each load: for tests")
    add_json_option(parser)
    arguments = parser.parse_args()
    arguments.closed, arguments.open_percents = CLOSED, OPEN_PERCENTS
    if arguments.smoke:
        arguments.text, arguments.seconds = 16 << 20, 0.4
        arguments.closed, arguments.open_percents = (1, REFERENCE), (80,)
    return arguments


def build_text(quired, directory, size_bytes):
    """Returns the path of an archive of about `size` bytes of text."""
    draw = random.Random(3)
    words = [bytes(draw.choices(b"etaoinshrdlucmfw", k=draw.randint(2, 9)))
             for _ in range(WORDS)]
    text = directory / "text"
    file_bytes = min(TEXT_FILE_BYTES, size_bytes)
    with open(text, "wb") as file:
        while file.tell() < file_bytes:
            file.write(b" ".join(draw.choices(words, k=100_000)) + b"\n")
    names = [directory / f"text-{number}" for number in range(-(-size_bytes // file_bytes))]
    for name in names:
        os.link(text, name)
    archive = directory / "bench.quire"
    build_archive(quired, archive, names, ["--codec", "zstd:1", "--block-size", BLOCK_SIZE])
    return archive


def admitted_bound_ms(before, after, refused):
    """Returns an upper bound in ms on the duration of 99 % of the reads served between
    two texts of /metrics, from their histograms; None past the last bound. Refused
    calls would be the fastest."""
    def counts(text):
        found = re.findall(r'^quire_call_duration_seconds_bucket\{(.*?)le="([^"]+)"\} (\S+)',
                           text, re.MULTILINE)
        return [(float(bound), float(count)) for labels, bound, count in found
                if 'method="Read"' in labels]

    grown = [(bound, late - early)
             for (bound, late), (_, early) in zip(counts(after), counts(before))]
    called = grown[-1][1]
    wanted = called - 0.01 * max(0, called - refused)
    bound = next(bound for bound, count in grown if count >= wanted)
    return None if bound == float("inf") else 1000 * bound


class Watch(threading.Thread):
    """Polls the server under load: the maximum of waiting requests, and the first refusal
    that a client without retries sees."""

    def __init__(self, server, stubs, text_bytes):
        super().__init__(daemon=True)
        self.server, self.stubs, self.text_bytes = server, stubs, text_bytes
        self.queued_max = self.in_flight_bytes_max = 0
        self.refusal = None
        self._over = threading.Event()

    def run(self):
        with self.server.channel() as channel:
            archive = self.stubs.rpc.ArchiveStub(channel)
            while not self._over.wait(POLL_SECONDS):
                sums = metric_sums(self.server.metrics())
                self.queued_max = max(self.queued_max, sums["quire_queued_fetches"])
                self.in_flight_bytes_max = max(self.in_flight_bytes_max,
                                               sums["quire_in_flight_bytes"])
                if self.refusal is None and sums["quire_admission_rejected_total"] > 0:
                    self._seek_refusal(archive)

    def _seek_refusal(self, archive):
        """Requests enough at once to get a refusal if the server is still full."""
        last = self.text_bytes - RANGE_BYTES
        calls = [archive.Read.future(self.stubs.pb.ReadRequest(
            archive=ARCHIVE, range=self.stubs.pb.ByteRange(
                offset=random.randrange(last), size_bytes=RANGE_BYTES))) for _ in range(PROBES)]
        for call in calls:
            error = call.exception(timeout=60)
            if error is not None:
                self.refusal = error_of(self.stubs, error)

    def stop(self):
        self._over.set()
        self.join()


class LiveDisk:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.quired, self.loadtest, self.disk_figures = find_programs(
            arguments.build, *PROGRAMS)
        self.stubs = make_stubs(directory)
        self.archive = build_text(self.quired, directory, arguments.text)
        self.extent_bytes = sum(file.stat().st_size for file in segment_files(self.archive))
        self.model = self.virtual_time()
        self.rows = []

    def virtual_time(self):
        """Returns {load: [rate, p50, p99, longest]} by disk_figures."""
        output = subprocess.run([self.disk_figures, str(self.extent_bytes)],
                                stdout=subprocess.PIPE, text=True, check=True).stdout
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in output.splitlines() if line.startswith("| ")]
        return {row[0]: list(map(float, (row[1], *row[3:6]))) for row in rows[1:]}

    def load(self, *options):
        """Returns the report of quire-loadtest; some of its calls may have been refused
        until it gave up."""
        command = [self.loadtest, ARCHIVE, "--json", *options]
        result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        report = json.loads(result.stdout) if result.returncode in (0, 1) else None
        if report is None or report["wrong"] or not all(
                code.startswith("RESOURCE_EXHAUSTED") for code in report["errors_by_code"]):
            raise RuntimeError(f"quire-loadtest: exit code {result.returncode}: "
                               f"{result.stderr[-1000:]}")
        return report

    def measure(self, label, model_label, *options):
        """Returns (rate, a refusal) of one load, and adds its row."""
        seconds = self.arguments.seconds
        model = f"QUIRED_EXPERIMENT_DEVICE_MODEL={self.arguments.device_model}"
        with cold_server(self.quired, ARCHIVE, self.archive, "--direct-io", "off",
                         command=("env", model)) as server:
            watch = Watch(server, self.stubs, self.arguments.text)
            before = server.metrics()
            watch.start()
            report = self.load(
                "--server", server.address, "--range-size", f"{RANGE_BYTES}B", "--connections",
                CONNECTIONS, "--duration", seconds, "--warmup", f"{seconds / 5:.2f}s", *options)
            watch.stop()
            after = server.metrics()
            resident = server.resident_peak_bytes()
        sums, sums_before = metric_sums(after), metric_sums(before)
        refused = int(sums["quire_admission_rejected_total"]
                      - sums_before["quire_admission_rejected_total"])
        admitted = admitted_bound_ms(before, after, refused)
        latency = report["latency_ms"]
        self.rows.append({
            "load": label, "requests_per_second": round(report["requests_per_second"], 1),
            **{f"{name}_ms": round(latency[name], 3) for name in ("p50", "p99", "max")},
            "refused": refused, "given_up": report["errors"], "admitted_bound_ms": admitted,
            "queued_max": int(watch.queued_max),
            "in_flight_bytes_max": int(watch.in_flight_bytes_max),
            "resident_peak_bytes": resident, "virtual_time": self.model.get(model_label)})
        print(" ".join(cells(self.rows[-1])), file=sys.stderr, flush=True)
        return report["requests_per_second"], watch.refusal

    def run(self):
        rates = {}
        for count in self.arguments.closed:
            model_label = "RANDOM" if count == 1 else f"live, {count} outstanding"
            rates[count], _ = self.measure(f"{count:,} in flight", model_label,
                                           "--in-flight", count)
        for percent in (*self.arguments.open_percents, OVERLOAD_PERCENT):
            _, refusal = self.measure(
                f"open loop, {percent} %", f"open loop, {percent} % of {REFERENCE} outstanding",
                "--rate", f"{percent / 100 * max(1, rates[REFERENCE]):.3f}")
        return refusal



def cells(row):
    def number(value):
        return "-" if value is None else f"{value:,.0f}"

    return [row["load"], *(number(row[name]) for name in (
        "requests_per_second", "p50_ms", "p99_ms", "max_ms", "refused", "given_up",
        "admitted_bound_ms", "queued_max")),
            *(number(row[name] / (1 << 20)) for name in (
                "in_flight_bytes_max", "resident_peak_bytes")),
            " / ".join(map(number, row["virtual_time"] or [None]))]


def table(rows):
    """Returns Markdown lines."""
    return markdown(["load", "reads/s", "p50 ms", "p99 ms", "longest ms", "refused", "given up",
                     "99 % of admitted below, ms", "most fetches queued", "most answers, MiB",
                     "peak resident, MiB", "virtual time: reads/s / p50 / p99 / longest"],
                    map(cells, rows))


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        load_before = os.getloadavg()[0]
        live = LiveDisk(arguments, pathlib.Path(scratch))
        refusal = live.run()
    lines = [f"{live.extent_bytes:,} bytes on {arguments.device_model}, ranges of 16 KiB; "
             f"{os.cpu_count()} cores, load average before {load_before:.1f}", "",
             *table(live.rows)]
    if refusal is not None:
        code, reason, message, has_hint = refusal
        lines += ["", f"Under the last load a reader was told: {code}, {reason}, {message!r}"
                  f"{', with a time to come back' if has_hint else ''}."]
    print_figures(arguments, {"extent_bytes": live.extent_bytes, "rows": live.rows}, lines)


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, RuntimeError, ValueError) as error:
        sys.exit(f"live_disk.py: {error}")
