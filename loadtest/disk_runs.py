# SPDX-License-Identifier: Apache-2.0
"""What device_bench.py and sweep.py share: archives that are built once, servers
that start cold, and one way to load them in each of the paper's modes.
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

from live_server import LiveServer, run_measured

MODES = ("full", "batch", "random")
RANGE_BYTES = 16 << 10


def find_programs(build, *names):
    """Paths in the build folder's bin; ends the script if one is missing."""
    paths = [pathlib.Path(build).resolve() / "bin" / name for name in names]
    for path in paths:
        if not path.is_file():
            sys.exit(f"no {path}; build it first: cmake --build {build} --target {path.name}")
    return paths


def folder_bytes(folder):
    return sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if file.is_file())


def segment_files(archive):
    return sorted(pathlib.Path(archive).glob("segment-*"))


def drop_cache(archive):
    """Lets the kernel forget an archive's files: what is not read past its page
    cache is then read from the disk all the same."""
    for path in pathlib.Path(archive).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def build_archive(quired, source, folder, name, options):
    """(path of FOLDER/NAME.quire, CPU seconds): built unless it is there, then 0."""
    archive = pathlib.Path(folder) / f"{name}.quire"
    if archive.exists():
        return archive, 0
    partial = archive.with_suffix(".new")
    shutil.rmtree(partial, ignore_errors=True)
    _, cpu, _, _ = run_measured([quired, "build", "--quiet", *options, "-o", partial, source])
    partial.rename(archive)
    return archive, cpu


def least_memory(quired, archive):
    """What `quired serve` must be given at least, in bytes: its cache is then as
    small as it gets, and reading stays cold."""
    result = subprocess.run([quired, "serve", archive, "--listen", "127.0.0.1:0", "--memory", "1MiB"],
                            stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    found = re.search(r"([\d.]+) (KiB|MiB|GiB) are needed", result.stderr)
    if not found:
        raise RuntimeError(f"quired does not say what memory it needs:\n{result.stderr}")
    shift = {"KiB": 10, "MiB": 20, "GiB": 30}[found.group(2)]
    # It rounds to three digits.
    return int(float(found.group(1)) * 1.01 * (1 << shift)) + (1 << 20)


def cold_server(quired, name, archive, *flags):
    """A LiveServer of one archive, with nothing of it in memory."""
    drop_cache(archive)
    return LiveServer(str(quired), [f"{name}={archive}"], "--memory",
                      f"{least_memory(quired, archive)}B", *map(str, flags))


def metric_sums(text):
    """{name: sum over all labels} of what /metrics says."""
    sums = {}
    for line in text.splitlines():
        found = re.match(r"([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)", line)
        if found:
            sums[found.group(1)] = sums.get(found.group(1), 0) + float(found.group(2))
    return sums


def difference(before, after):
    return {name: value - before.get(name, 0) for name, value in after.items()}


class Loader:
    """Runs quire-loadtest, every answer compared with the source, and `quire`."""

    def __init__(self, build):
        self.loadtest, self.quire = find_programs(build, "quire-loadtest", "quire")

    def report(self, command):
        result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                                check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit code {result.returncode}: "
                               f"{result.stdout[-1000:]}")
        return json.loads(result.stdout)

    def takes_modes(self):
        text = subprocess.run([self.loadtest, "--help"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        return "--mode" in text

    def run(self, server, name, source, mode, seconds, in_flight=1, batch_size=10_000, seed=1):
        """Of one run: requests, seconds, text_bytes, and p50_ms, p99_ms if each
        request had an answer of its own. FULL reads all; BATCH hands over
        `batch_size` ranges of 16 KiB at once; RANDOM has `in_flight` calls under
        way for `seconds`."""
        modes = ["--mode", mode] if self.takes_modes() else []
        if mode != "random" and not modes:
            return self.run_client(server, name, source, mode, batch_size, seed)
        limits = {"random": ["--in-flight", in_flight, "--duration", seconds,
                             "--requests", 10_000_000],
                  "batch": ["--batch-size", batch_size, "--requests", batch_size],
                  "full": []}[mode]
        report = self.report([
            self.loadtest, name, "--server", server.address, "--source", source, *modes,
            "--range-size", f"{RANGE_BYTES}B", *limits, "--seed", seed, "--json", "-"])
        return {"requests": report["right"], "seconds": report["seconds"],
                "text_bytes": report["text_bytes"], "p50_ms": report["latency_ms"]["p50"],
                "p99_ms": report["latency_ms"]["p99"]}

    def run_client(self, server, name, source, mode, batch_size, seed):
        """BATCH and FULL by the command-line client."""
        text_bytes = os.stat(source).st_size
        command = [self.quire, "--server", server.address, "--quiet", "-o", "/dev/null"]
        items = None
        if mode == "full":
            command += ["scan", name]
        else:
            draw = random.Random(seed)
            size = min(RANGE_BYTES, text_bytes)
            items = "".join(f"{draw.randint(0, text_bytes - size)} {size}\n"
                            for _ in range(batch_size))
            command += ["batch", name, "--ranges", "--unordered"]
        started = time.monotonic()
        subprocess.run(list(map(str, command)), input=items, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - started
        if mode == "batch":
            text_bytes = batch_size * size
        return {"requests": batch_size if mode == "batch" else None, "seconds": seconds,
                "text_bytes": text_bytes, "p50_ms": None, "p99_ms": None}
