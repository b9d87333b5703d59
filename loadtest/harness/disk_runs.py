# SPDX-License-Identifier: Apache-2.0
"""Functions shared by device_bench.py, paper_rlz.py and others: archives that are built
once, servers that start cold, and load in each of the paper's modes."""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess

from bench_setup import find_programs
from live_server import LiveServer, run_measured

MODES = ("full", "batch", "random")
# A command for cold_server(): the server reads as from the hard disk of the RLZ paper.
MODELLED_DISK = ("env", "QUIRED_EXPERIMENT_DEVICE_MODEL=wd-red")
RANGE_BYTES = 16 << 10


def directory_bytes(directory):
    return sum(file.stat().st_size for file in pathlib.Path(directory).rglob("*") if file.is_file())


def segment_files(archive):
    return sorted(pathlib.Path(archive).glob("segment-*"))


def drop_cache(archive):
    """Removes an archive's files from the page cache, so that later reads come from the disk."""
    for path in pathlib.Path(archive).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def keep_archive(quired, source, directory, name, options):
    """Returns (path of DIRECTORY/NAME.quire, CPU seconds): built unless it exists, then 0."""
    archive = pathlib.Path(directory) / f"{name}.quire"
    if archive.exists():
        return archive, 0
    partial = archive.with_suffix(".new")
    shutil.rmtree(partial, ignore_errors=True)
    _, cpu, _, _ = run_measured([quired, "build", "--quiet", *options, "-o", partial, source])
    partial.rename(archive)
    return archive, cpu


@functools.lru_cache
def least_memory(quired, archive):
    """Returns the minimum --memory of `quired serve`, in bytes: its cache is then the
    smallest, and reads stay cold."""
    result = subprocess.run([quired, "serve", archive, "--listen", "127.0.0.1:0", "--memory", "1MiB"],
                            stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    found = re.search(r"([\d.]+) (KiB|MiB|GiB) are needed", result.stderr)
    if not found:
        raise RuntimeError(f"quired does not say what memory it needs:\n{result.stderr}")
    shift = {"KiB": 10, "MiB": 20, "GiB": 30}[found.group(2)]
    # The message rounds to three digits.
    return int(float(found.group(1)) * 1.01 * (1 << shift)) + (1 << 20)


def cold_server(quired, name, archive, *flags, command=()):
    """Returns a LiveServer of one archive without cached data; `command` as there."""
    drop_cache(archive)
    return LiveServer(str(quired), [f"{name}={archive}"], "--memory",
                      f"{least_memory(quired, archive)}B", *map(str, flags), command=command)


def metric_sums(text):
    """Returns {name: sum over all labels} of /metrics."""
    sums = {}
    for line in text.splitlines():
        found = re.match(r"([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)", line)
        if found:
            sums[found.group(1)] = sums.get(found.group(1), 0) + float(found.group(2))
    return sums


class Loader:
    """Runs quire-loadtest; compares every answer with the source, except where stated."""

    def __init__(self, build, command=()):
        """`command` precedes quire-loadtest's own, such as one that selects its cores."""
        self.command = [*command, *find_programs(build, "quire-loadtest")]

    def report(self, options, counts_errors=False):
        """Returns the JSON of a run. With `counts_errors` failed requests are in it, else they
        are an error."""
        command = list(map(str, [*self.command, *options, "--json"]))
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode > counts_errors:
            raise RuntimeError(f"{' '.join(command)}: exit code {result.returncode}: "
                               f"{result.stdout[-1000:]}")
        return json.loads(result.stdout)

    def run(self, server, name, source, mode, seconds, in_flight=1, batch_size=10_000, seed=1):
        """Returns requests, seconds, text_bytes, p50_ms and p99_ms of one run. FULL reads
        everything, a request being one message; BATCH requests `batch_size` ranges of
        16 KiB at once; RANDOM has `in_flight` calls in flight for `seconds`."""
        ranges = ["--range-size", f"{RANGE_BYTES}B", "--seed", seed]
        options = {"random": [*ranges, "--in-flight", in_flight, "--duration", seconds],
                   "batch": [*ranges, "--batch-size", batch_size, "--requests", batch_size],
                   "full": []}[mode]
        report = self.report([
            name, "--server", server.address, "--source", source, "--mode", mode, *options])
        return {"requests": report["right"], "seconds": report["seconds"],
                "text_bytes": report["text_bytes"], "p50_ms": report["latency_ms"]["p50"],
                "p99_ms": report["latency_ms"]["p99"]}

    def scan(self, server, name, encoding, seconds, streams, source=None):
        """Returns the MB of text per second of repeated scans in a wire encoding for
        `seconds`, in equal parts by `streams` concurrent streams. Checks checksums,
        and contents if there is a `source`; then everything is read once."""
        until = ["--duration", seconds] if source is None else ["--source", source]
        report = self.report([
            name, "--server", server.address, "--mode", "full", "--encoding",
            encoding, "--in-flight", streams, *until])
        return report["text_bytes"] / 1e6 / report["seconds"]
