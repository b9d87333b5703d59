#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""migration_bench.py runs on two generated versions of a tree: every experiment has its
figures, those that do not depend on time are what they must be, the drawing is XML, and
mistakes are named.

usage: migration_bench_smoke.py BUILD_DIRECTORY
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import disk_image
import migration_bench


def run(build, *words):
    return subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name("migration_bench.py"), "--build", build,
         *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def make_versions(directory):
    """Forty files in two versions: a quarter of them changed, of words that no window of
    gzip reaches back to."""
    draw = random.Random(1)
    for number in range(40):
        text = " ".join(draw.randbytes(4).hex() for _ in range(2000))
        for version in ("old", "new"):
            path = directory / version / f"part{number % 3}" / f"file{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if number % 4 == 0:
                text = text[:5000] + "another line" + text[5400:]


def check_figures(figures):
    [corpus] = figures.values()
    size = corpus["text_bytes"]
    assert abs(corpus["newest_from"] / size - 0.5) < 0.01, corpus["newest_from"]
    for name, (plain, moved, *_) in corpus["gains"].items():
        assert 0 < moved and 0 < plain < size, name
    plain, moved, *_ = corpus["gains"]["gzip"]
    assert migration_bench.gain(plain, moved) > 50, (plain, moved)
    parts = corpus["parts"]
    assert set(parts) == set(migration_bench.PARTS)
    assert parts["nothing"]["stored_bytes"] == parts["similar"]["stored_bytes"] == size
    assert parts["all"]["stored_bytes"] < 0.7 * size, parts["all"]
    assert parts["similar"]["compressed_bytes"] < parts["nothing"]["compressed_bytes"]
    assert len(corpus["chunks"]) == 2 * len(migration_bench.CHUNK_SIZES)
    assert len(corpus["super_features"]) == len(migration_bench.SUPER_FEATURES)
    assert set(corpus["methods"]) == set(migration_bench.METHODS)
    for row in [*corpus["chunks"].values(), *parts.values()]:
        assert row["text_bytes"] == size and row["runs"] >= 1, row
    everything, newest = parts["nothing"]["reads"]
    assert everything["text_bytes"] == size
    assert newest["text_bytes"] == size - corpus["newest_from"]


def check_sample(directory):
    """Versions keep the same files; documents of a .tsv are sampled like files; a file
    alone is truncated."""
    out = directory / "sample"
    versions = [directory / "old", directory / "new"]
    newest = migration_bench.write_corpus([str(path) for path in versions], 300_000, out)
    size = out.stat().st_size
    assert 100_000 < size < 600_000 and abs(newest / size - 0.5) < 0.01, (newest, size)
    text, lines = b"", []
    for version in versions:
        for path in sorted(version.rglob("file*")):
            contents = path.read_bytes()
            lines.append(f"{len(text)}\t{len(contents)}\t{path.relative_to(directory)}\n")
            text += contents
    (directory / "all.raw").write_bytes(text)
    (directory / "all.tsv").write_text("".join(lines))
    before = out.read_bytes()
    assert migration_bench.write_corpus([str(directory / "all.raw")], 300_000, out) == newest
    assert out.read_bytes() == before
    (directory / "all.tsv").unlink()
    assert migration_bench.write_corpus([str(directory / "all.raw")], 300_000, out) == 0
    assert out.read_bytes() == text[:out.stat().st_size] and 299_000 < out.stat().st_size <= 300_000


def check_images(directory):
    """Of each version one, a sound file system with all its files."""
    out = directory / "images"
    versions = [directory / "old", directory / "new"]
    newest = migration_bench.write_corpus([f"ext4:{version}" for version in versions], 1 << 30,
                                          out)
    images = out.read_bytes()[:newest], out.read_bytes()[newest:]
    for version, image in zip(versions, images, strict=True):
        out.write_bytes(image)
        disk_image.run_tool("e2fsck", "-f", "-n", out)
        copies = directory / "copies" / version.name
        copies.mkdir(parents=True)
        disk_image.run_tool("debugfs", "-R", f"rdump / {copies}", out)
        files = list(version.rglob("file*"))
        for file in files:
            assert (copies / file.relative_to(version)).read_bytes() == file.read_bytes(), file
        assert len(image) < 1.5 * sum(file.stat().st_size for file in files), len(image)
    # Of a sample, the same files of both.
    newest = migration_bench.write_corpus([f"ext4:{version}" for version in versions], 300_000,
                                          out)
    assert newest == out.stat().st_size / 2 and newest < 0.8 * len(images[0]), newest


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        make_versions(directory)
        check_sample(directory)
        check_images(directory)
        corpus = f"tree={directory / 'old'},{directory / 'new'}"
        result = run(build, corpus, "--no-peers", "--work", directory, "--out",
                     directory / "drawn.svg", "--json", directory / "figures.json")
        assert result.returncode == 0, result.stderr
        assert "super-features" in result.stdout, result.stdout
        figures = json.loads((directory / "figures.json").read_text())
        check_figures(figures)
        assert migration_bench.draw(figures) == (directory / "drawn.svg").read_text()
        xml.etree.ElementTree.parse(directory / "drawn.svg")
        (directory / "empty").write_bytes(b"")
        for words, message in (
                (("tree",), 'a corpus must be NAME=PATH[,PATH...], got "tree"'),
                ((f"x={directory / 'none'}",), "none: no such file or directory"),
                ((f"x=ext4:{directory / 'empty'}",), "empty: not a directory; ext4: is"),
                ((f"x={directory / 'empty'}",), "nothing to compress"),
                ((corpus, "--sample-size", "much"), '--sample-size must be a number'),
                ((corpus, "--delta-chunks", 0), "--delta-chunks must be at least 1, got 0")):
            result = run(build, *words)
            assert result.returncode != 0 and message in result.stderr, result.stderr


if __name__ == "__main__":
    main()
