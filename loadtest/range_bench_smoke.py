#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""range_bench.py runs on a generated text: every range and way has a figure, the
drawing is XML with a curve for each, and mistakes are named. What it measures means
nothing here.

usage: range_bench_smoke.py BUILD_DIRECTORY
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import range_bench

PIECES = 2
SVG_PATH = "{http://www.w3.org/2000/svg}path"


def run(build, *words):
    return subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name("range_bench.py"), "--build", build,
         *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def check_figures(figures):
    assert len(figures["pieces"]) == PIECES, figures["pieces"]
    found = {(line["offset"], line["size"]) for line in figures["ranges"]}
    sizes = {*range_bench.SHORT_SIZES, *range_bench.LONG_SIZES}
    assert found == {(offset, size) for offset in [*range_bench.OFFSETS, None] for size in sizes}
    for line in figures["ranges"]:
        assert set(line["us"]) == set(range_bench.WAYS), line
        assert all(time > 0 for time in line["us"].values()), line
    for piece in figures["pieces"]:
        # Text of few words: partitions lose some, and the fewer the smaller they are.
        losses = [range_bench.loss(piece, 6, size) for size in range_bench.PARTITION_SIZES]
        assert losses[0] > losses[2] > losses[-1] > -0.1, losses
    assert figures["pieces"][0]["stored"]["zlib:6"] <= figures["pieces"][-1]["stored"]["zlib:6"]


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        draw = random.Random(1)
        words = [draw.randbytes(draw.randint(1, 6)).hex() for _ in range(2000)]
        (directory / "text").write_text(" ".join(draw.choices(words, k=60_000)))
        (directory / "short").write_text("too short for a piece")
        result = run(build, directory, "--pieces", PIECES, "--round-us", 1, "--out",
                     directory / "ranges.svg", "--json", directory / "ranges.json")
        assert result.returncode == 0, result.stderr
        assert "points lost" in result.stdout, result.stdout
        check_figures(json.loads((directory / "ranges.json").read_text()))
        root = xml.etree.ElementTree.parse(directory / "ranges.svg").getroot()
        curves = [path for path in root.iter(SVG_PATH) if path.get("class") == "curve"]
        # Each has a line in a legend.
        expected = 3 * len(range_bench.WAYS) + 2 * len(range_bench.PARTITION_SIZES)
        assert len(curves) == 2 * expected, len(curves)
        for words, message in (((directory / "short",), "no file of 256,000 bytes or more"),
                               ((directory / "none",), "no such file or directory"),
                               ((directory, "--pieces", 0), "--pieces must be at least 1, got 0")):
            result = run(build, *words)
            assert result.returncode != 0 and message in result.stderr, result.stderr


if __name__ == "__main__":
    main()
