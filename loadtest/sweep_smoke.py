#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The sweep and the device benchmark run on a small text: every cell is there and
complete, pictures and pages have it, and a second run measures nothing again. What
they measure means nothing here.

usage: sweep_smoke.py BUILD_DIRECTORY
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from codec_table import read_csv
from live_server import make_documents, write_corpus
from sweep_table import COLUMNS, TEXT_COLUMNS

NEED_NOT_BE = {"dictionary_size_bytes", "in_flight", "batch_size", "requests", "p50_ms", "p99_ms"}
# Of the real disk: two codecs, two block sizes, three modes; of the model one mode.
CELLS = 2 * 2 * (3 + 1)


def run(script, build, *options):
    result = subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name(script), "--build", build,
         *map(str, options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_sweep(build, corpus, out):
    run("sweep.py", build, "--corpus", corpus, "--out", out, "--codecs", "lz4,rlz:2",
        "--block-sizes", "16KiB,64KiB", "--dictionary-sizes", "64KiB", "--devices",
        "real,table1-ssd:random", "--seconds", "0.2", "--batch-size", "20",
        "--model-batch-size", "5")
    return (out / "results.csv").read_bytes()


def check_sweep(build, corpus, out):
    first = run_sweep(build, corpus, out)
    assert run_sweep(build, corpus, out) == first, "a cell was measured again"
    rows = read_csv(out / "results.csv", COLUMNS, TEXT_COLUMNS)
    assert len(rows) == CELLS, len(rows)
    for row in rows:
        lacking = [column for column, value in row.items()
                   if value is None and column not in NEED_NOT_BE]
        assert not lacking, (row, lacking)
        assert 0 < row["rate_percent"] < 120 and row["ranges_per_second"] > 0, row
        assert (row["p50_ms"] is not None) == (row["mode"] == "random"), row
        assert (row["dictionary_size_bytes"] is None) == row["codec"].startswith("lz4"), row
    picture = xml.etree.ElementTree.parse(out / "modes.svg").getroot()
    tips = picture.findall(".//{http://www.w3.org/2000/svg}title")
    assert len(tips) == len(rows) + 1, len(tips)
    page = (out / "results.html").read_text()
    assert page.count("<svg") == 2 and page.count("<table>") == 4, "a pane is missing"
    assert (out / "results.md").read_text().count("\n| ") >= len(rows)


def check_device_bench(build, corpus, out):
    # Through the page cache: the directory may lie where there is no O_DIRECT.
    figures = json.loads(run(
        "device_bench.py", build, "--corpus", corpus, "--out", out, "--dictionary-size", "64KiB",
        "--seconds", "0.2", "--repetitions", "1", "--batch-size", "20", "--page-cache", "--json", "-"))
    for name in ("random_storage", "random_decode", "scan_storage", "scan_decode", "random", "batch",
                 "full_identity", "full_stored", "random_storage_of_decode"):
        assert figures[name] > 0, figures
    assert (figures["random_read_bytes"] % 4096 == 0
            and figures["random_reads_a_request"] > 0), figures


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        stem, out = f"{scratch}/text", pathlib.Path(scratch, "out")
        write_corpus(make_documents(12, seed=3), stem)
        check_sweep(build, f"{stem}.raw", out)
        check_device_bench(build, f"{stem}.raw", out)
    print(f"{CELLS} cells, complete")


if __name__ == "__main__":
    main()
