#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures size, build speed and random reads of a text in Quire and its peers: the
table of README.md.

    loadtest/bench/archive_bench.py --corpus /data/webdocs --slice 256

The text is STEM.raw, with --slice N STEMN.raw. Documents are those of STEM.raw that
STEM.tsv lists (offset, size and id of each), about as much as the text, evenly spread.
Sizes are in percent of the text: payload, block index, and the dictionary as archives
store it, under xz -9e. Build and read speeds are for one core's CPU time, in memory or
from the page cache; every byte is compared with the text first.

Omits peers that are not installed: deploy/bootstrap.sh bench installs bgzip,
libdeflate and RocksDB. --modules DIR names a directory with libzim, indexed_gzip and
rapidgzip of PyPI, `pip install --target DIR -r python_peers.txt`; --cargo builds DwarFS's
crates, which takes Rust 1.87 and minutes.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from disk_runs import directory_bytes, least_memory
from live_server import LiveServer, make_documents, parse_size, run_measured, write_corpus
from markdown_table import format_number, format_size, markdown

PROGRAMS = ("codec_figures", "quired", "quire-loadtest")
PEERS = pathlib.Path(__file__).with_name("archive_peers.cc")
PYTHON_PEERS = pathlib.Path(__file__).with_name("python_peers.py")
DWARFS_PEER = pathlib.Path(__file__).with_name("dwarfs_peer")
# Row and what it reads.
PYTHON_FORMS = {"zim": ("ZIM (libzim), zstd in clusters of 2 MiB", "documents"),
                "indexed_gzip": ("gzip -9, indexed_gzip", "ranges"),
                "rapidgzip": ("gzip -9, rapidgzip", "ranges")}
# Block sizes in MiB.
DWARFS_FORMS = {16: "DwarFS, zstd -22, 16 MiB blocks", 1: "DwarFS, zstd -22, 1 MiB blocks"}
PEER_HEADERS = ("libdeflate.h", "rocksdb/db.h")
BLOCK_SIZE = 64 << 10
# Row of each codec.
FORMS = {"rlz": "Quire `rlz`, 64 KiB blocks, {dictionary} dictionary", "rlz:max": "Quire `rlz:max`",
         "zstd:9": "zstd -9 in 64 KiB blocks, no dictionary", "zlib:9": "zlib -9 in 64 KiB blocks",
         "lz4": "LZ4 in 64 KiB blocks"}
STORE_FORM = "the same as a store of whole documents"
# Options of quired build -> row.
BUILDS = {"": "Quire, a plain `quired build`, served over gRPC",
          "--objective=archive": "Quire, `--objective archive`, served over gRPC"}


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--corpus", metavar="STEM", help="path without .raw")
    parser.add_argument("--slice", metavar="N", default="", help="measure STEMN.raw, of N MiB")
    parser.add_argument("--dictionary-size", default="16MiB", metavar="SIZE")
    parser.add_argument("--modules", type=pathlib.Path, metavar="DIR",
                        help="Python modules of further peers")
    parser.add_argument("--cargo", action="store_true", help="measure DwarFS, too")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each timed round")
    parser.add_argument("--smoke", action="store_true", help="a small generated text, briefly")
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.corpus and not arguments.smoke:
        parser.error("--corpus is required, unless --smoke is given")
    return arguments


def write_documents(stem, wanted_bytes, directory):
    """Writes (text, index) in `directory`: documents of STEM, evenly spread, of about
    `wanted_bytes`. The last of several with one id counts, as in any store."""
    rows = {}
    with open(f"{stem}.tsv", encoding="utf-8", errors="surrogateescape") as index:
        for line in index:
            offset, size, name = line.rstrip("\n").split("\t", 2)
            if int(size):
                rows[name] = (int(offset), int(size))
    total = sum(size for _, size in rows.values())
    text, index = directory / "documents.raw", directory / "documents.tsv"
    passed = written = 0
    with open(f"{stem}.raw", "rb") as source, open(text, "wb") as raw, \
            open(index, "w", encoding="utf-8", errors="surrogateescape") as out:
        for name, (offset, size) in rows.items():
            passed += size
            if written * total >= passed * wanted_bytes:
                continue
            source.seek(offset)
            raw.write(source.read(size))
            out.write(f"{written}\t{size}\t{name}\n")
            written += size
    return text, index


class Bench:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.program, self.quired, self.loadtest = find_programs(arguments.build, *PROGRAMS)
        stem = arguments.corpus
        if arguments.smoke:
            stem = str(directory / "smoke")
            write_corpus(make_documents(40, seed=3), stem)
            arguments.dictionary_size, arguments.seconds = "64KiB", 0.001
        self.text = pathlib.Path(f"{stem}{arguments.slice}.raw")
        self.documents, self.index = write_documents(stem, self.text.stat().st_size, directory)

    def codec_rows(self, text, codecs, read, *options):
        """Returns a row for each codec; `read` has the ranges to read at random."""
        command = [self.program, text, "--codecs", ",".join(codecs), "--dictionary-size",
                   self.arguments.dictionary_size, "--seconds", self.arguments.seconds, *options]
        printed = subprocess.run(list(map(str, command)), check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        for codec, line in zip(codecs, printed.splitlines(), strict=True):
            found = json.loads(line)
            stored = sum(found[f"{part}_bytes"] for part in ("payload", "index", "dictionary_xz"))
            yield {"codec": codec, "stored_bytes": stored, "text_bytes": found["text_bytes"],
                   "build_mb_per_second": found["encode_mb_per_second"],
                   "reads_per_second": found[f"{read}_per_second"], "read": read}

    def write_tar(self):
        """Returns the path of a tar of the documents."""
        path = self.directory / "documents.tar"
        with tarfile.open(path, "w") as tar, open(self.documents, "rb") as text, \
                open(self.index, encoding="utf-8", errors="surrogateescape") as index:
            for line in index:
                _, size, name = line.rstrip("\n").split("\t", 2)
                entry = tarfile.TarInfo(name)
                entry.size = int(size)
                tar.addfile(entry, text)
        return path

    def built_rows(self):
        """Returns a row for each of BUILDS."""
        tar = self.write_tar()
        for number, (option, form) in enumerate(BUILDS.items()):
            archive = self.directory / f"built-{number}.quire"
            cpu = run_measured([self.quired, "build", "--force", "--quiet", *option.split(),
                                "-o", archive, tar])[1]
            # The cache holds little of the text.
            memory = least_memory(self.quired, archive) + (32 << 20)
            with LiveServer(self.quired, [f"built={archive}"], "--memory",
                            f"{memory}B") as server:
                self.load(server, 0.1)
                before = server.cpu_seconds()
                report = self.load(server, self.arguments.seconds)
                spent = server.cpu_seconds() - before
            yield self.peer_row(form, self.documents, "documents", {
                "stored_bytes": directory_bytes(archive), "build_cpu_seconds": cpu,
                "reads_per_second": report["right"] / spent})

    def load(self, server, seconds):
        """Reads documents at random in batches; returns the report."""
        printed = run_measured([
            self.loadtest, "built", "--server", server.address, "--source", self.documents,
            "--index", self.index, "--what", "documents", "--mode", "batch", "--batch-size", 2000,
            "--requests", max(2000, int(100_000 * seconds)), "--json"])[3]
        return json.loads(printed)

    def peers(self):
        lacking = [name for name in PEER_HEADERS if not pathlib.Path("/usr/include", name).exists()]
        lacking += [name for name in ("bgzip",) if not shutil.which(name)]
        if lacking:
            print(f"no {', '.join(lacking)}: deploy/bootstrap.sh bench installs it",
                  file=sys.stderr)
            return
        program = self.directory / "archive_peers"
        subprocess.run(["g++", "-std=c++20", "-O3", "-Wall", "-Wextra", PEERS, "-o", program,
                        "-lrocksdb", "-ldeflate"], check=True)
        packed, gzi = self.directory / "text.gz", self.directory / "text.gz.gzi"
        _, cpu, _, _ = run_measured(["bgzip", "--index", "--index-name", gzi, "--stdout",
                                     self.text], standard_output=packed)
        yield self.peer_row("bgzip, indexed", self.text, "ranges", {
            "stored_bytes": packed.stat().st_size + gzi.stat().st_size, "build_cpu_seconds": cpu,
            **self.run_peer(program, "bgzf", self.text, packed, gzi)})
        yield self.peer_row(
            "RocksDB, zstd -3, 64 KiB blocks", self.documents, "documents",
            self.run_peer(program, "rocksdb", self.documents, self.index,
                          self.directory / "rocksdb", BLOCK_SIZE))

    def python_peers(self):
        if self.arguments.modules is None:
            return
        environment = f"PYTHONPATH={self.arguments.modules.resolve()}"
        for peer, (form, read) in PYTHON_FORMS.items():
            text = self.documents if read == "documents" else self.text
            out = self.directory / f"{peer}.zim"
            yield self.peer_row(form, text, read, self.run_peer(
                "env", environment, "/usr/bin/python3", PYTHON_PEERS, peer, text, self.index, out))

    def dwarfs_peers(self):
        if not self.arguments.cargo:
            return
        target = self.directory / "cargo"
        subprocess.run(["cargo", "build", "--quiet", "--release", "--manifest-path",
                        DWARFS_PEER / "Cargo.toml", "--target-dir", target], check=True)
        for mebibytes, form in DWARFS_FORMS.items():
            yield self.peer_row(form, self.documents, "documents", self.run_peer(
                target / "release/dwarfs_peer", self.documents, self.index,
                self.directory / "image.dwarfs", mebibytes << 20, 22))

    def run_peer(self, program, *words):
        # Libraries print to standard output as well; the last line is ours.
        printed = run_measured([program, *words, self.arguments.seconds])[3]
        return json.loads(printed.splitlines()[-1])

    @staticmethod
    def peer_row(form, text, read, found):
        size = text.stat().st_size
        return {"form": form, "stored_bytes": found["stored_bytes"], "text_bytes": size,
                "build_mb_per_second": size / 1e6 / max(found["build_cpu_seconds"], 1e-3),
                "reads_per_second": found["reads_per_second"], "read": read}

    def run(self):
        rows = list(self.codec_rows(self.text, FORMS, "ranges"))
        for row in rows:
            row["form"] = FORMS[row["codec"]].format(
                dictionary=format_size(parse_size(self.arguments.dictionary_size)))
        store, = self.codec_rows(self.documents, ["rlz"], "documents", "--index", self.index)
        rows.insert(1, {**store, "form": STORE_FORM})
        rows[2:2] = self.built_rows()
        return rows + [*self.peers(), *self.python_peers(), *self.dwarfs_peers()]


def table(rows):
    """Returns Markdown lines."""
    return markdown(
        ["form", "size, % of the text", "build MB/s", "random reads per second per core"],
        [[row["form"], f"{100 * row['stored_bytes'] / row['text_bytes']:.2f}",
          format_number(row["build_mb_per_second"], 1 if row["build_mb_per_second"] < 100 else 0),
          f"{format_number(row['reads_per_second'])} "
          + ("documents" if row["read"] == "documents" else f"ranges of {format_size(16 << 10)}")]
         for row in rows])


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        rows = Bench(arguments, pathlib.Path(directory)).run()
    print_figures(arguments, rows, table(rows))


if __name__ == "__main__":
    main()
