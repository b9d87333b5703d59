#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The codec benchmark runs, over all codecs, on a small text: every row is there
and complete, table and picture have it, and a second run measures nothing again.
What it measures means nothing here.

usage: codec_bench_smoke.py BUILD_DIRECTORY
"""
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from codec_runs import Codecs, archive_sizes
from codec_table import KEY, block_table, format_size, read_csv
from live_server import make_documents, write_corpus

BLOCK_SIZES = (16 << 10, 64 << 10)
DICTIONARY_SIZE = 64 << 10
DICTIONARY_METHODS = ("uniform", "coverage")
NEED_NOT_BE = {*KEY, "documents_per_second", "choose_cpu_seconds", "prepare_cpu_seconds",
               "dictionary_xz_bytes", "dictionary_zlib_bytes"}


def run(build, stem, out):
    result = subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name("codec_bench.py"), "--build", build,
         "--corpus", stem, "--out", out, "--block-sizes", "16KiB,64KiB", "--dictionary-sizes",
         "64KiB", "--dictionary-methods", ",".join(DICTIONARY_METHODS), "--encode-seconds", "0.2", "--decode-seconds", "0.001",
         "--repetitions", "1", "--peers", "no", "--jobs", "2"],
        stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return (out / "results.csv").read_bytes()


def expected_rows(codecs):
    for spec in codecs.defaults():
        for block_size in BLOCK_SIZES:
            for method in DICTIONARY_METHODS if codecs.needs_dictionary(spec) else (None,):
                yield spec, block_size, method, method and DICTIONARY_SIZE


def main():
    build = pathlib.Path(sys.argv[1])
    codecs = Codecs(build / "bin" / "codec_bench")
    with tempfile.TemporaryDirectory() as scratch:
        stem, out = f"{scratch}/text", pathlib.Path(scratch, "out")
        write_corpus(make_documents(12, seed=3), stem)
        first = run(build, stem, out)
        assert run(build, stem, out) == first, "a row was measured again"
        rows = read_csv(out / "results.csv")
        blocks = [row for row in rows if row["kind"] == "block"]
        found = [(r["codec"], r["block_size_bytes"], r["dictionary_method"],
                  r["dictionary_size_bytes"]) for r in blocks]
        assert sorted(map(str, found)) == sorted(map(str, expected_rows(codecs))), found
        for row in blocks:
            lacking = [column for column, value in row.items()
                       if value is None and column not in NEED_NOT_BE]
            assert not lacking, (row, lacking)
            assert 0 < row["rate_percent"] < 110, row
            assert row["encode_mb_per_second"] > 0 and row["ranges_per_second"] > 0, row
        archives = [row for row in rows if row["kind"] == "archive"]
        sizes = archive_sizes(BLOCK_SIZES, [DICTIONARY_SIZE])
        assert len(archives) == len(codecs.flagships()) * len(sizes), archives
        assert any(row["kind"] == "store" and row["documents_per_second"] > 0 for row in rows)
        table = (out / "results.md").read_text()
        for row in blocks:
            line = f"{row['codec']} | {format_size(row['block_size_bytes'])} |".replace("*", "")
            assert line in table.replace("*", ""), line
        assert len(block_table(rows)) == len(blocks) + 2
        picture = xml.etree.ElementTree.parse(out / "pareto.svg").getroot()
        tips = picture.findall(".//{http://www.w3.org/2000/svg}title")
        assert len(tips) == len(blocks) + 1, len(tips)
    print(f"{len(rows)} rows, complete")


if __name__ == "__main__":
    main()
