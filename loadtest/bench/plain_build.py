#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a plain `quired build` with the best of its options.

usage: plain_build.py [--smoke] [--grid] [--whole] [--report] [--threads N] [--build DIR] COLLECTION...
       plain_build.py --limits CODEC [--report] [--threads N] [--build DIR] COLLECTION...
       plain_build.py --against QUIRED [--whole] [--threads N] [--build DIR] COLLECTION...

COLLECTION is a directory (plain_collections.py makes some). Builds each plainly and with all choices off;
with --grid also with {16, 32, 64 MiB} x {off, dedup, auto, full} x inflate {off, auto}; skips
inflate off where it makes no difference with reorder off. With --whole also compresses all files of a
collection, in order of path, as one stream with zstd and xz, which have no random access.
Prints a Markdown table of sizes in percent of the text and CPU seconds, and exits with 1 if a plain archive is
more than 0.1 % above all off, or with --grid more than 3 % above the best (4 % up to 64 MiB), or CPU is above
1.3 times all off over their sum; --report only prints that.
With --limits builds each with the codec and dictionaries of at most 16, 32, 64, 128 and 256 MiB, prints the
sizes, and exits with 1 if one is more than 0.2 % above that of a smaller limit.
With --against builds each plainly with that program too, one after the other, and prints size and CPU of
both; COLLECTION may be a file.
--smoke generates small collections and compares only sizes. --build, else QUIRE_BINARY_DIR, names the build
directory.
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
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from markdown_table import markdown

BUILD = os.environ.get("QUIRE_BINARY_DIR", "build/release")
MIB = 1 << 20
PLAIN = ()
OFF = ("--reorder", "off", "--inflate", "off", "--dictionary-size", "16MiB")
# Limits above all off and above the best of the grid, and of CPU by all off.
OFF_MARGIN, BEST_MARGIN, CPU_RATIO_MAX = 1.001, 1.03, 1.3
# No order is tried if the dictionary can hold all text: that saves a pass over it.
HELD_SIZE_BYTES, HELD_MARGIN = 64 * 2**20, 1.04
# Limits of the dictionary, and of an archive above that of a smaller one.
DICTIONARY_MIB, LIMIT_MARGIN = (16, 32, 64, 128, 256), 1.002
WHOLE = {"zstd -19 --long": ("zstd", "-19", "--long=27", "-T1", "-q", "-c"), "xz -9e": ("xz", "-9e", "-T1", "-c")}


def build(quired, collection, options, threads):
    """Returns (size, CPU seconds, text size, choices, seconds of clock)."""
    with tempfile.TemporaryDirectory(dir=collection.parent) as scratch:
        out = f"{scratch}/a"
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([quired, "build", "-q", "-o", out, "--threads", str(threads), *options, collection],
                       check=True)
        after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begin
        about = json.loads(subprocess.run([quired, "inspect", "--json", out], check=True,
                                          capture_output=True).stdout)
        size = sum(path.stat().st_size for path in pathlib.Path(out).iterdir())
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return size, seconds, about["size_bytes"], about["choice"], clock


def whole_size(collection, command):
    """Returns the size of all files of the collection, compressed as one stream."""
    names = subprocess.run(["find", collection, "-type", "f", "-print0"], check=True, capture_output=True).stdout
    reading = "sort -z | xargs -0 cat | " + " ".join(command) + " | wc -c"
    return int(subprocess.run(reading, shell=True, check=True, input=names, capture_output=True).stdout)


def grid():
    sizes = (16 * MIB, 32 * MIB, 64 * MIB)
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


def best_of_grid(quired, collection, off, text, threads):
    """Returns the smallest size and its options."""
    best, inflated_off = (off, OFF), None
    for options in grid():
        is_off, inflates = "off" in options[:4], options[-1] == "auto"
        if not inflates and inflated_off == off:
            continue
        size = build(quired, collection, options, threads)[0]
        if is_off and inflates and inflated_off is None:
            inflated_off = size
        print(f"  {size / text * 100:.3f} {' '.join(options)}", file=sys.stderr, flush=True)
        best = min(best, (size, options))
    return best


def table(rows):
    """Markdown lines."""
    whole = [name for name in WHOLE if all(name in row for row in rows)]
    total = [sum(row[name] for row in rows) for name in ("plain_seconds", "off_seconds")]
    lines = [[row["name"], f"{row['text'] / 1e6:.1f}", *(f"{row[name] / row['text'] * 100:.3f}" for name in (
        "plain", "off", "best", *whole)), f"{row['plain_seconds']:.1f}", f"{row['off_seconds']:.1f}",
        f"{row['plain_seconds'] / max(row['off_seconds'], 1e-9):.2f}"] for row in rows]
    return markdown(["collection", "MB", "plain %", "all off %", "best %", *(f"{name} %" for name in whole), "CPU s", "all off", "ratio"],
                    [*lines, ["sum", *[""] * (4 + len(whole)), f"{total[0]:.1f}", f"{total[1]:.1f}",
                              f"{total[0] / max(total[1], 1e-9):.2f}"]])


def compare(quired, collections, with_grid, with_whole, threads):
    """Returns a row for each."""
    rows = []
    for collection in collections:
        off, off_seconds, text, *_ = build(quired, collection, OFF, threads)
        plain, seconds, _, choice, _ = build(quired, collection, PLAIN, threads)
        print(f"{collection.name}: {choice}", file=sys.stderr, flush=True)
        best, options = best_of_grid(quired, collection, off, text, threads) if with_grid else (off, OFF)
        rows.append({"name": collection.name, "text": text, "plain": plain, "off": off, "best": best,
                     "best_options": options, "plain_seconds": seconds, "off_seconds": off_seconds,
                     **{name: whole_size(collection, command) for name, command in WHOLE.items() if with_whole}})
    return rows


def misses(rows, with_cpu):
    """What is above its bound."""
    failures = []
    for row in rows:
        plain, off, best = row["plain"], row["off"], row["best"]
        if plain > off * OFF_MARGIN:
            failures.append(f"{row['name']}: {plain / off - 1:.2%} above all off")
        if plain > best * (HELD_MARGIN if row["text"] <= HELD_SIZE_BYTES else BEST_MARGIN):
            failures.append(f"{row['name']}: {plain / best - 1:.2%} above {' '.join(row['best_options'])}")
    ratio = sum(row["plain_seconds"] for row in rows) / max(sum(row["off_seconds"] for row in rows), 1e-9)
    if with_cpu and ratio > CPU_RATIO_MAX:
        failures.append(f"CPU is {ratio:.2f} times all off")
    return failures


def compare_limits(quired, collections, codec, threads):
    """Prints a table; returns what is above its bound."""
    rows, failures = [], []
    for collection in collections:
        sizes = []
        for mib in DICTIONARY_MIB:
            options = ("--codec", codec, "--dictionary-size", f"{mib}MiB")
            size, _, text, *_ = build(quired, collection, options, threads)
            if size > min([size, *sizes]) * LIMIT_MARGIN:
                failures.append(f"{collection.name}: {size / min(sizes) - 1:.2%} above a smaller limit at {mib} MiB")
            sizes.append(size)
        rows.append([collection.name, f"{text / 1e6:.0f} MB", *(f"{size / text:.3%}" for size in sizes)])
    print("\n".join(markdown(("collection", "text", *(f"{mib} MiB" for mib in DICTIONARY_MIB)), rows)))
    return failures


def compare_programs(before, now, collections, with_whole, threads):
    """Prints a table of plain builds by two programs, one after the other."""
    rows, sums = [], [0.0] * 4
    for collection in collections:
        old, old_seconds, text, _, old_clock = build(before, collection, PLAIN, threads)
        new, seconds, _, choice, clock = build(now, collection, PLAIN, threads)
        print(f"{collection.name}: {choice}", file=sys.stderr, flush=True)
        times = (seconds, old_seconds, clock, old_clock)
        sums = [total + each for total, each in zip(sums, times)]
        whole = [f"{whole_size(collection, command) / text * 100:.3f}" for command in WHOLE.values() if with_whole]
        rows.append([collection.name, f"{text / 1e6:.1f}", f"{new / text * 100:.3f}", f"{old / text * 100:.3f}",
                     f"{(new / old - 1) * 100:+.1f}", *whole, *time_columns(*times)])
    names = [f"{name} %" for name in WHOLE if with_whole]
    rows.append(["sum", *[""] * (4 + len(names)), *time_columns(*sums)])
    print("\n".join(markdown(("collection", "MB", "plain %", "before %", "change %", *names, "CPU s", "before",
                              "ratio", "clock s", "before"), rows)))


def time_columns(seconds, old_seconds, clock, old_clock):
    return (f"{seconds:.1f}", f"{old_seconds:.1f}", f"{seconds / old_seconds:.2f}", f"{clock:.1f}", f"{old_clock:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--limits", metavar="CODEC")
    parser.add_argument("--against", type=pathlib.Path, metavar="QUIRED")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("collections", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    quired = options.build / "bin" / "quired"
    if options.against:
        failures = []
        compare_programs(options.against, quired, options.collections, options.whole, options.threads)
    elif options.limits:
        failures = compare_limits(quired, options.collections, options.limits, options.threads)
    else:
        if options.smoke:
            with tempfile.TemporaryDirectory(prefix="quire-plain-build-") as directory:
                rows = compare(quired, make_small(pathlib.Path(directory)), True, True, 2)
        else:
            rows = compare(quired, options.collections, options.grid, options.whole, options.threads)
        print("\n".join(table(rows)))
        failures = misses(rows, not options.smoke)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures and not options.report else 0


if __name__ == "__main__":
    sys.exit(main())
