#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a plain `quired build` with the best of its options.

usage: plain_build.py [--smoke] [--grid] [--threads N] COLLECTION...

COLLECTION is a directory (plain_collections.py makes some). Builds each plainly and with all choices off;
with --grid also with {16, 32, 64 MiB within the rule} x {off, dedup, auto, full} x inflate {off, auto}.
Prints sizes in percent of the text and CPU seconds, and exits with 1 if a plain archive is more than 0.1 %
above all off, or with --grid more than 3 % above the best, or CPU is above 1.3 times all off over their sum.
--smoke generates small collections and compares only sizes. QUIRE_BINARY_DIR names the build directory.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import zlib

QUIRED = pathlib.Path(os.environ.get("QUIRE_BINARY_DIR", "build/release")) / "bin" / "quired"
MIB = 1 << 20
PLAIN = ()
OFF = ("--reorder", "off", "--inflate", "off", "--dictionary-size", "16MiB")
# Limits above all off and above the best of the grid, and of CPU by all off.
OFF_MARGIN, BEST_MARGIN, CPU_RATIO_MAX = 1.001, 1.03, 1.3


def build(collection, options, threads):
    """Returns (size, CPU seconds, text size, choices)."""
    with tempfile.TemporaryDirectory(dir=collection.parent) as scratch:
        out = f"{scratch}/a"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([QUIRED, "build", "-q", "-o", out, "--threads", str(threads), *options, collection],
                       check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        about = json.loads(subprocess.run([QUIRED, "inspect", "--json", out], check=True,
                                          capture_output=True).stdout)
        size = sum(path.stat().st_size for path in pathlib.Path(out).iterdir())
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return size, seconds, about["size_bytes"], about["choice"]


def grid(text_size):
    limit = max(16 * MIB, min(64 * MIB, text_size // 8))
    sizes = [size for size in (16 * MIB, 32 * MIB, 64 * MIB) if size <= limit] or [limit]
    for size, reorder, inflate in itertools.product(sizes, ("off", "dedup", "auto", "full"), ("off", "auto")):
        yield ("--dictionary-size", f"{size // MIB}MiB", "--reorder", reorder, "--inflate", inflate)


def make_small(directory):
    """Generates collections of 1 to 6 MB; each choice suits some."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(3000)]

    def prose(size):
        return " ".join(rng.choices(words, k=size // 7)).encode()

    small = {}
    base = [prose(60000) for _ in range(8)]
    small["releases"] = [text if rng.random() < 0.8 else text.replace(b"a", b"b", 40)
                         for _ in range(6) for text in base]
    small["prose"] = [prose(50000) for _ in range(30)]
    small["members"] = [zlib.compress(prose(50000), 9) for _ in range(40)]
    small["noise"] = [rng.randbytes(40000) for _ in range(30)]
    small["log"] = [b"".join(b"2026-01-%02d host%d GET /%s 200 %d\n" % (
        day, rng.randrange(9), rng.choice(words).encode(), rng.randrange(9999)) for _ in range(4000))
        for day in range(1, 12)]
    for name, texts in small.items():
        (directory / name).mkdir()
        for i, text in enumerate(texts):
            (directory / name / f"{i:03}").write_bytes(text)
    return sorted(directory.iterdir())


def compare(collections, with_grid, threads, with_cpu):
    failures = []
    cpu = {"plain": 0.0, "off": 0.0}
    print(f"{'collection':12} {'MB':>6} {'plain %':>8} {'off %':>8} {'best %':>8} {'CPU s':>7} {'off':>7}")
    for collection in collections:
        off, off_seconds, text, _ = build(collection, OFF, threads)
        plain, seconds, _, choice = build(collection, PLAIN, threads)
        best, best_options = off, OFF
        for options in grid(text) if with_grid else ():
            size = build(collection, options, threads)[0]
            print(f"  {size / text * 100:.3f} {' '.join(options)}", flush=True)
            if size < best:
                best, best_options = size, options
        cpu["plain"] += seconds
        cpu["off"] += off_seconds
        print(f"{collection.name:12} {text / 1e6:6.1f} {plain / text * 100:8.3f} {off / text * 100:8.3f} "
              f"{best / text * 100:8.3f} {seconds:7.1f} {off_seconds:7.1f}  {choice}", flush=True)
        if plain > off * OFF_MARGIN:
            failures.append(f"{collection.name}: {plain / off - 1:.2%} above all off")
        if plain > best * BEST_MARGIN:
            failures.append(f"{collection.name}: {plain / best - 1:.2%} above {' '.join(best_options)}")
    ratio = cpu["plain"] / max(cpu["off"], 1e-9)
    print(f"CPU {cpu['plain']:.1f} s, {ratio:.2f} times all off")
    if with_cpu and ratio > CPU_RATIO_MAX:
        failures.append(f"CPU is {ratio:.2f} times all off")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("collections", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    if options.smoke:
        with tempfile.TemporaryDirectory(prefix="quire-plain-build-") as directory:
            failures = compare(make_small(pathlib.Path(directory)), True, 2, False)
    else:
        failures = compare(options.collections, options.grid, options.threads, True)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
