#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the results of "Migratory Compression: Coarse-grained Data Reordering to Improve
Compressibility" next to archives that are built with and without `--reorder`.

    loadtest/papers/paper_migration.py /data/versions

STEM.raw has documents of several versions, the newest last, and STEM.tsv offset, size and
id of each, as make_corpus.py writes them. A sample keeps the documents whose names have a
small hash, which are the same in all versions. The gain is the growth of the
compression factor, in percent: of gzip and 7z with migration in the paper, of codecs zlib
and xz here. The newest version is read from the modelled hard disk wd-red.
"""
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, make_parser
from disk_runs import MODELLED_DISK, cold_server, directory_bytes
from live_server import make_documents, parse_size, write_corpus
from markdown_table import markdown

# Codec -> options, and the gains that the paper reports for its nearest compressor.
CODECS = {"zlib": ([], "23 to 105 (gzip)"), "xz": (["--block-size", "1MiB"], "15 to 74 (7z)"),
          "zstd": ([], "-"), "rlz": (["--dictionary-size", "4MiB"], "-")}
MODES = ("off", "dedup", "auto", "full")


def parse_arguments():
    parser = make_parser(__doc__, "quired", "quire")
    parser.add_argument("stem", nargs="?", metavar="STEM", help="path without .raw")
    parser.add_argument("--sample-size", type=parse_size, default="48MiB", metavar="SIZE",
                        help="text to keep (default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="a small generated text, briefly")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.stem and not arguments.smoke:
        parser.error("STEM is required, unless --smoke is given")
    return arguments


def sample(stem, sample_size):
    """Returns (id, bytes) of the documents to keep."""
    share = min(1, sample_size / pathlib.Path(f"{stem}.raw").stat().st_size)
    chosen = []
    with open(f"{stem}.tsv", encoding="utf-8", errors="surrogateescape") as index, \
            open(f"{stem}.raw", "rb") as raw:
        for line in index:
            offset, size, name = line.rstrip("\n").split("\t", 2)
            # Names of versions of a file differ only in the front.
            ending = "/".join(name.split("/")[-2:]).encode("utf-8", "surrogateescape")
            digest = hashlib.sha256(ending).digest()
            if int.from_bytes(digest[:4], "big") < share * 2**32:
                raw.seek(int(offset))
                chosen.append((name, raw.read(int(size))))
    return chosen


def smoke_documents():
    """Returns two versions, the second with a change in each document."""
    first = make_documents(20, seed=3)
    return ([(f"1/{name}", text) for name, text in first]
            + [(f"2/{name}", text[:3000] + b"changed" + text[3000:]) for name, text in first])


def newest_range(documents):
    """Returns (offset, size) of the documents of the last one's version."""
    version = documents[-1][0].split("/")[0]
    size = sum(len(text) for name, text in documents if name.split("/")[0] == version)
    return sum(len(text) for _, text in documents) - size, size


def read_seconds(programs, archive, offset, size):
    quired, quire = programs
    with cold_server(quired, "migration", archive, command=MODELLED_DISK) as server:
        started = time.monotonic()
        subprocess.run([quire, "--server", server.address, "range", "migration", str(offset),
                        str(size)], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - started


def gain(plain, moved):
    return f"{100 * (plain / moved - 1):+.1f}"


def measure(arguments, directory):
    programs = find_programs(arguments.build, "quired", "quire")
    documents = smoke_documents() if arguments.smoke else sample(arguments.stem,
                                                                 arguments.sample_size)
    stem = directory / "sample"
    write_corpus(documents, stem)
    text_bytes = stem.with_suffix(".raw").stat().st_size
    rows = []
    for codec, (options, paper) in CODECS.items():
        sizes, seconds = {}, {}
        for mode in MODES:
            archive = directory / f"{codec}-{mode}.quire"
            build_archive(programs[0], archive, [f"{stem}.tar"],
                          ["--codec", codec, "--reorder", mode, *options])
            sizes[mode] = directory_bytes(archive)
            if codec == "zlib":
                seconds[mode] = read_seconds(programs, archive, *newest_range(documents))
        rows.append([f"{codec}: archive, `--reorder {' / '.join(MODES)}`, % of the text", "-",
                     " / ".join(f"{100 * size / text_bytes:.2f}" for size in sizes.values())])
        rows.append([f"{codec}: gain, `--reorder dedup / auto / full`, %", paper,
                     " / ".join(gain(sizes["off"], sizes[mode]) for mode in MODES[1:])])
        if seconds:
            rows.append(["reading the newest version, times as long, `dedup / auto / full`",
                         "- / 1.24 (a third of the clusters) / 7",
                         " / ".join(f"{seconds[mode] / seconds['off']:.2f}"
                                    for mode in MODES[1:])])
    return text_bytes, rows


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        text_bytes, rows = measure(arguments, pathlib.Path(directory))
    print_figures(arguments, rows, [f"Sample of {text_bytes:,} bytes.", "",
                                    *markdown(["what", "paper", "here"], rows)])


if __name__ == "__main__":
    main()
