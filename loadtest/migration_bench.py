#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compressors with and without migration, and what each of its parts is worth: the
experiments of "Migratory Compression: Coarse-grained Data Reordering to Improve
Compressibility" (FAST 2014).

    loadtest/migration_bench.py linux=/src/linux-6.1.190,/src/linux-6.1.192 \\
      docs=/data/webdocs64.raw --out migration.svg --json migration.json

A corpus is a name and its versions, the newest last: files, or directories, whose files
are concatenated in order of name. A file NAME.raw with a NAME.tsv, as make_corpus.py
writes them, has a version for each first part of an id. Of a corpus above --sample-size a
part is taken: those files and documents whose names have a small hash, so that versions
keep the same ones; of other files the first bytes. For two Linux trees: apt-get download
linux-source-6.1=VERSION (`apt-cache policy` lists two), dpkg -x, and their fs, mm, kernel.
A version ext4:DIRECTORY is a disk image of a directory's files, shrunk; of these a part is
taken before the image is made.

Peers that are not installed are left out: deploy/bootstrap.sh bench installs all. Sizes
are of whole files as each program writes them, recipes included. Reading is modelled: a
disk of 8 ms a seek and 150 MB/s that has blocks of 64 KiB under zstd's rate, of which a
window of 1 MiB takes each once in order of storage.
"""
import dataclasses
import hashlib
import itertools
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import range_plot
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from codec_table import format_size, markdown
from disk_image import append_image
from live_server import parse_size, run_measured

CHUNK_SIZES = (2048, 8192, 32768)
SUPER_FEATURES = (1, 2, 4, 8, 16)
METHODS = ("odess", "ntransform", "finesse")
# Name -> the options of what moves. The first is what the others are compared with.
PARTS = {"nothing": ("--keep-order", "--keep-duplicates"),
         "duplicates": ("--keep-order",),
         "similar": ("--keep-duplicates",),
         "a third": ("--moved-share", 1 / 3),
         "two thirds": ("--moved-share", 2 / 3),
         "all": ()}
# Compressors of one file: name -> (program, words); IN and OUT stand for paths, and
# without OUT the program writes to standard output.
COMPRESSORS = {
    "gzip": ("gzip", ["-6", "-c", "IN"]),
    "bzip2": ("bzip2", ["-9", "-c", "IN"]),
    "xz": ("xz", ["-6", "-T1", "-c", "IN"]),
    "7z": ("7z", ["a", "-bd", "-bso0", "-mmt=1", "OUT", "IN"]),
    "rzip": ("rzip", ["-k", "-f", "-o", "OUT", "IN"]),
}
# Those that look far back by themselves, and what they make of a text as it is.
LONG_COMPRESSORS = {
    "zstd -19 --long=31": ("zstd", ["-19", "--long=31", "-T1", "-q", "-c", "IN"]),
    "xz -9e": ("xz", ["-9e", "-T1", "-c", "IN"]),
    "lrzip": ("lrzip", ["-q", "-f", "-p", "1", "-o", "OUT", "IN"]),
    "zpaq -m3": ("zpaq", ["a", "OUT", "IN", "-m3", "-t1"]),
}
SWEEP = "gzip"
DELTA_COMPRESSORS = ("gzip", "xz")
SEEK_SECONDS, DISK_BYTES_PER_SECOND, BLOCK_SIZE = 0.008, 150e6, 64 << 10
CHUNK_ENTRY = struct.Struct("<QII")
IMAGE = "ext4:"


class BenchError(Exception):
    """What the caller can mend."""


# --- Corpora ---

@dataclasses.dataclass
class Piece:
    """A file, or a document of one."""
    path: pathlib.Path
    offset: int
    size: int
    # By which it is sampled; empty: it is not, but truncated.
    name: str
    # The version that it is of, and the directory if that is a disk image.
    version: str
    image_of: pathlib.Path | None = None


def is_sampled(name, share):
    """Of the end of a name, so that the same file of another version is judged alike."""
    digest = hashlib.sha256("/".join(name.split("/")[-2:]).encode()).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def pieces_of(version):
    """In order: a directory's files, the documents of NAME.raw if NAME.tsv is there, or
    the file."""
    image_of = None
    if version.startswith(IMAGE):
        image_of = pathlib.Path(version.removeprefix(IMAGE))
        if not image_of.is_dir():
            raise BenchError(f"{image_of}: not a directory; {IMAGE} is the image of one")
    version = image_of or pathlib.Path(version)
    index = version.with_suffix(".tsv")
    if version.is_dir():
        return [Piece(path, 0, path.stat().st_size, str(path), str(version), image_of)
                for path in sorted(version.rglob("*"))
                if path.is_file() and not path.is_symlink()]
    if not version.is_file():
        raise BenchError(f"{version}: no such file or directory")
    if index == version or not index.is_file():
        return [Piece(version, 0, version.stat().st_size, "", str(version))]
    rows = [line.split("\t") for line in index.read_text(encoding="utf-8").splitlines()]
    return [Piece(version, int(offset), int(size), name, name.split("/")[0])
            for offset, size, name in rows]


def write_corpus(versions, sample_size, out):
    """Concatenates the versions; returns where the newest begins."""
    pieces = [piece for version in versions for piece in pieces_of(version)]
    total = sum(piece.size for piece in pieces)
    share = min(1, sample_size / max(1, total))
    newest = 0
    with out.open("wb") as target:
        for (_, image_of), group in itertools.groupby(
                pieces, lambda piece: (piece.version, piece.image_of)):
            newest = target.tell()
            chosen = [piece for piece in group
                      if not piece.name or is_sampled(piece.name, share)]
            if image_of and chosen:
                append_image([piece.path for piece in chosen], image_of, target, out.parent)
                continue
            for piece in chosen:
                with piece.path.open("rb") as source:
                    source.seek(piece.offset)
                    target.write(source.read(piece.size if piece.name else
                                             max(1, int(piece.size * share))))
    if out.stat().st_size == 0:
        raise BenchError(f"{', '.join(versions)}: nothing to compress in a sample of "
                         f"{format_size(sample_size)}; give files, or a larger --sample-size")
    return newest


# --- Compressors ---

def compress(name, path, work):
    """(bytes, CPU seconds); None if the program is not installed."""
    program, words = {**COMPRESSORS, **LONG_COMPRESSORS}[name]
    if not shutil.which(program):
        return None
    # Some add a suffix unless it is there.
    out = work / ("packed.7z" if program == "7z" else f"packed.{program}")
    out.unlink(missing_ok=True)
    command = [program, *({"IN": path, "OUT": out}.get(word, word) for word in words)]
    if "OUT" in words:
        _, cpu, _, _ = run_measured(command, "/dev/null")
    else:
        _, cpu, _, _ = run_measured(command, out)
    size = out.stat().st_size
    out.unlink()
    return size, cpu


def size_of_tree(directory):
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def store_in(name, commands, work, text):
    """(bytes, CPU seconds) of a store that commands make; ROOT stands for it."""
    program = commands[0][0]
    if not shutil.which(program):
        return None
    with tempfile.TemporaryDirectory(dir=work) as root:
        environment = {"BORG_BASE_DIR": f"{root}/base", "RESTIC_PASSWORD": "x",
                       "RESTIC_CACHE_DIR": f"{root}/cache",
                       "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
        store = pathlib.Path(root) / "store"
        seconds = 0
        for command in commands:
            words = [str(word).replace("ROOT", str(store)).replace("TEXT", str(text))
                     for word in command]
            _, cpu, _, _ = run_measured(
                ["env", *(f"{key}={value}" for key, value in environment.items()), *words],
                "/dev/null")
            seconds += cpu
        size = size_of_tree(store) if store.is_dir() else store.stat().st_size
    return size, seconds


STORES = {
    "borg, zstd,19": [["borg", "init", "-e", "none", "ROOT"],
                      ["borg", "create", "--compression", "zstd,19", "ROOT::a", "TEXT"]],
    "restic, max": [["restic", "init", "-q", "-r", "ROOT"],
                    ["restic", "backup", "-q", "--compression", "max", "-r", "ROOT", "TEXT"]],
    "squashfs, zstd:19, 1 MiB": [["mksquashfs", "TEXT", "ROOT", "-quiet", "-no-progress",
                                  "-processors", "1", "-comp", "zstd", "-Xcompression-level",
                                  "19", "-b", "1M"]],
}


# --- Migration ---

class Migration:
    """migration_figures over one text."""

    def __init__(self, program, text, work):
        self.program, self.text, self.work = program, text, work

    def run(self, *options):
        """What it prints; `moved` of the work directory has the migrated text."""
        return json.loads(run_measured([self.program, self.text, "--out", self.work / "moved",
                                     *options])[3])

    def row(self, *options, compressor=SWEEP):
        """Of a migration, and what the compressor makes of it, the recipe included."""
        row = self.run(*options)
        size, row["compress_cpu_seconds"] = compress(compressor, self.work / "moved", self.work)
        row["compressed_bytes"] = size + row["recipe_bytes"]
        return row

    def gains(self, names):
        """Name -> [bytes as it is, bytes migrated, CPU seconds of each]."""
        recipe = self.run()["recipe_bytes"]
        found = {}
        for name in names:
            plain = compress(name, self.text, self.work)
            if plain is not None:
                moved = compress(name, self.work / "moved", self.work)
                found[name] = [plain[0], moved[0] + recipe, plain[1], moved[1]]
        return found

    def delta(self, count_max):
        """Some clusters, the chunks of each after the other, and their first ones with
        deltas of the others to these: compressed bytes of both by compressor. None if
        xdelta3 is not installed or nothing is similar."""
        if not shutil.which("xdelta3"):
            return None
        self.run("--chunks-out", self.work / "chunks")
        table = list(CHUNK_ENTRY.iter_unpack((self.work / "chunks").read_bytes()))
        clusters = {}
        for number, (_, _, leader) in enumerate(table):
            clusters.setdefault(leader, []).append(number)
        clusters = [numbers for numbers in clusters.values() if len(numbers) > 1]
        if not clusters:
            return None
        # Evenly spread, with about so many chunks in all.
        stride = -(-sum(map(len, clusters)) // count_max)
        moved, deltas = bytearray(), bytearray()
        count = 0
        with self.text.open("rb") as file:
            for numbers in clusters[::stride]:
                base = None
                for number in numbers:
                    offset, size, _ = table[number]
                    file.seek(offset)
                    chunk = file.read(size)
                    moved += chunk
                    deltas += chunk if base is None else self._delta(base, chunk)
                    base = base or chunk
                    count += 1
        found = {"chunks": count, "text_bytes": len(moved), "delta_bytes": len(deltas)}
        for name in DELTA_COMPRESSORS:
            for kind, text in (("moved", moved), ("deltas", deltas)):
                path = self.work / "sample"
                path.write_bytes(text)
                found[f"{name} {kind}"] = compress(name, path, self.work)[0]
        return found

    def _delta(self, base, chunk):
        first, second = self.work / "base", self.work / "chunk"
        first.write_bytes(base)
        second.write_bytes(chunk)
        return subprocess.run(["xdelta3", "-e", "-9", "-S", "none", "-n", "-D", "-A=", "-c", "-s",
                               first, second], check=True, stdout=subprocess.PIPE).stdout


def measure(program, versions, arguments, work):
    """The figures of one corpus."""
    text = work / "text"
    newest = write_corpus(versions, arguments.sample_size, text)
    migration = Migration(program, text, work)
    reads = ["--read-from", 0, "--read-from", newest, "--window-size", "1MiB"]
    figures = {"text_bytes": text.stat().st_size, "newest_from": newest,
               "gains": migration.gains(COMPRESSORS)}
    figures["chunks"] = {
        f"{kind} {format_size(size)}": migration.row("--chunk-size", size, *flags)
        for kind, flags in (("variable", ()), ("fixed", ("--fixed",))) for size in CHUNK_SIZES}
    figures["super_features"] = {
        str(count): migration.row("--super-features", count) for count in SUPER_FEATURES}
    figures["methods"] = {method: migration.row("--method", method) for method in METHODS}
    figures["parts"] = {name: migration.row(*options, *reads) for name, options in PARTS.items()}
    if not arguments.no_peers:
        figures["delta"] = migration.delta(arguments.delta_chunks)
        figures["long"] = migration.gains(LONG_COMPRESSORS)
        figures["stores"] = {name: found for name, commands in STORES.items()
                             if (found := store_in(name, commands, work, text)) is not None}
    return figures


# --- What the figures say ---

def percent(part, whole):
    return f"{100 * part / whole:.2f}"


def gain(plain, moved):
    """By how much the compression factor grows, in percent: the paper's measure."""
    return 100 * (plain / moved - 1)


def disk_seconds(row, read):
    """Modelled, of the `read`th reading."""
    cost = row["reads"][read]
    rate = row["compressed_bytes"] / row["stored_bytes"] if row["stored_bytes"] else 0
    return cost["seeks"] * SEEK_SECONDS + cost["blocks"] * BLOCK_SIZE * rate / DISK_BYTES_PER_SECOND


def stored_order_seconds(row):
    """The same of all blocks, each once, as they lie: a scan in stored order."""
    return SEEK_SECONDS + row["compressed_bytes"] / DISK_BYTES_PER_SECOND


def gain_rows(figures, key):
    return [[name, codec, percent(plain, corpus["text_bytes"]),
             percent(moved, corpus["text_bytes"]), f"{gain(plain, moved):+.1f}",
             f"{moved_cpu / max(plain_cpu, 1e-3):.2f}"]
            for name, corpus in figures.items()
            for codec, (plain, moved, plain_cpu, moved_cpu) in corpus.get(key, {}).items()]


GAIN_HEADER = ["corpus", "compressor", "as it is, %", "migrated, %", "gain, %", "CPU time, times"]


def sweep_rows(figures, key):
    rows = []
    for name, corpus in figures.items():
        plain = corpus["parts"]["nothing"]["compressed_bytes"]
        for label, row in corpus[key].items():
            speed = [row["text_bytes"] / 1e6 / max(row["divide_cpu_seconds"], 1e-6)]
            if row["sketch_cpu_seconds"] > 0:
                speed.append(row["stored_bytes"] / 1e6 / row["sketch_cpu_seconds"])
            rows.append([
                name, label, percent(row["compressed_bytes"], row["text_bytes"]),
                f"{gain(plain, row['compressed_bytes']):+.1f}",
                percent(row["stored_bytes"], row["text_bytes"]),
                percent(row["similar_chunks"], max(1, row["stored_chunks"])),
                percent(row["recipe_bytes"], row["text_bytes"]),
                " / ".join(f"{each:,.0f}" for each in speed)])
    return rows


def sweep_header(what):
    return ["corpus", what, f"{SWEEP}, %", "gain, %", "stored text, %", "similar chunks, %",
            "recipe, %", "MB/s: chunks / features"]


def read_rows(figures):
    rows = []
    for name, corpus in figures.items():
        plain = corpus["parts"]["nothing"]
        for label, row in corpus["parts"].items():
            cells = [name, label]
            for read in range(2):
                cost = row["reads"][read]
                cells += [f"{cost['blocks']:,}", f"{cost['seeks']:,}",
                          f"{disk_seconds(row, read) / disk_seconds(plain, read):.2f}"]
            cells.append(f"{stored_order_seconds(row) / disk_seconds(plain, 0):.2f}")
            rows.append(cells)
    return rows


READ_HEADER = ["corpus", "moved", "all: blocks", "seeks", "time, times", "newest: blocks", "seeks",
               "time, times", "all in stored order: time, times"]


def delta_rows(figures):
    rows = []
    for name, corpus in figures.items():
        found = corpus.get("delta")
        if found:
            rows += [[name, codec, f"{found['chunks']:,}",
                      percent(found[f"{codec} moved"], found["text_bytes"]),
                      percent(found[f"{codec} deltas"], found["text_bytes"]),
                      f"{100 * (1 - found[f'{codec} moved'] / found[f'{codec} deltas']):+.1f}"]
                     for codec in DELTA_COMPRESSORS]
    return rows


DELTA_HEADER = ["corpus", "compressor", "chunks", "migrated, %", "deltas, %", "smaller by, %"]


def store_rows(figures):
    return [[name, store, percent(size, corpus["text_bytes"]),
             f"{corpus['text_bytes'] / 1e6 / max(cpu, 1e-3):,.1f}"]
            for name, corpus in figures.items()
            for store, (size, cpu) in corpus.get("stores", {}).items()]


STORE_HEADER = ["corpus", "store", "%", "MB per second of CPU"]


def tables(figures):
    """(header, rows) of each, those without rows left out."""
    found = [(GAIN_HEADER, gain_rows(figures, "gains")),
             (GAIN_HEADER, gain_rows(figures, "long")),
             (STORE_HEADER, store_rows(figures)),
             (sweep_header("chunks"), sweep_rows(figures, "chunks")),
             (sweep_header("super-features"), sweep_rows(figures, "super_features")),
             (sweep_header("method"), sweep_rows(figures, "methods")),
             (sweep_header("moved"), sweep_rows(figures, "parts")),
             (READ_HEADER, read_rows(figures)),
             (DELTA_HEADER, delta_rows(figures))]
    return [table for table in found if table[1]]


def draw(figures):
    """The SVG of all figures."""
    def gains(corpus, rows):
        plain = corpus["parts"]["nothing"]["compressed_bytes"]
        return [gain(plain, row["compressed_bytes"]) for row in rows]

    codecs = [codec for codec in {**COMPRESSORS, **LONG_COMPRESSORS}
              if any(codec in {**corpus["gains"], **corpus.get("long", {})}
                     for corpus in figures.values())]
    by_codec, by_size, by_count, by_part = [], [], [], []
    for name, corpus in figures.items():
        found = {**corpus["gains"], **corpus.get("long", {})}
        for kind, place in (("as it is", 0), ("migrated", 1)):
            by_codec.append((f"{name} {kind}", [
                (rank, 100 * found[codec][place] / corpus["text_bytes"])
                for rank, codec in enumerate(codecs, 1) if codec in found]))
        for kind in ("variable", "fixed"):
            rows = [corpus["chunks"][f"{kind} {format_size(size)}"] for size in CHUNK_SIZES]
            by_size.append((f"{name} {kind}",
                            list(zip(CHUNK_SIZES, gains(corpus, rows), strict=True))))
        by_count.append((name, list(zip(SUPER_FEATURES, gains(
            corpus, corpus["super_features"].values()), strict=True))))
        plain = corpus["parts"]["nothing"]
        for read, what in enumerate(("all", "newest")):
            by_part.append((f"{name} {what}", [
                (rank, disk_seconds(corpus["parts"][part], read) / disk_seconds(plain, read))
                for rank, part in enumerate(PARTS)]))
    listed = ", ".join(f"{rank} {codec}" for rank, codec in enumerate(codecs, 1))
    parts = ", ".join(f"{rank} {part}" for rank, part in enumerate(PARTS))
    return range_plot.render("Migratory compression", [
        range_plot.Pane("Compressed size, % of the text", listed, by_codec, (False, False)),
        range_plot.Pane(f"Gain of {SWEEP} by chunk size, %", "bytes", by_size, (True, False)),
        range_plot.Pane(f"Gain of {SWEEP} by number of super-features, %", "super-features",
                        by_count, (False, False)),
        range_plot.Pane("Modelled time of reading, as a multiple of unmoved text",
                        f"moved: {parts}", by_part, (False, False))])


# --- The command ---

def parse_corpus(parser, word):
    name, separator, paths = word.partition("=")
    if not separator or not name or not all(paths.split(",")):
        parser.error(f'a corpus must be NAME=PATH[,PATH...], got "{word}"')
    return name, paths.split(",")


def parse_arguments():
    parser = make_parser(__doc__, "migration_figures")
    parser.add_argument("corpora", nargs="+", metavar="NAME=PATH[,PATH...]")
    parser.add_argument("--sample-size", default="16MiB", metavar="SIZE",
                        help="of each corpus at most about that much (default: %(default)s: all "
                        "of two corpora takes some ten minutes)")
    parser.add_argument("--delta-chunks", type=int, default=1000, metavar="N",
                        help="chunks for which xdelta3 is run (default: %(default)s)")
    parser.add_argument("--no-peers", action="store_true",
                        help="without delta compression and slow compressors: half the time")
    parser.add_argument("--work", type=pathlib.Path, default="/var/tmp", metavar="DIR",
                        help="for intermediate files, some times --sample-size "
                        "(default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="the drawing, an SVG")
    add_json_option(parser)
    arguments = parser.parse_args()
    try:
        arguments.sample_size = parse_size(arguments.sample_size)
    except (KeyError, ValueError):
        parser.error("--sample-size must be a number and KiB, MiB or GiB, got "
                     f'"{arguments.sample_size}"')
    if arguments.sample_size < 1:
        parser.error("--sample-size must be at least 1KiB, got 0")
    if arguments.delta_chunks < 1:
        parser.error(f"--delta-chunks must be at least 1, got {arguments.delta_chunks}")
    arguments.corpora = dict(parse_corpus(parser, word) for word in arguments.corpora)
    return arguments


def main():
    arguments = parse_arguments()
    [program] = find_programs(arguments.build, "migration_figures")
    missing = [name for name in (SWEEP, *DELTA_COMPRESSORS) if not shutil.which(name)]
    if missing:
        raise BenchError(f"no {missing[0]}; install it: deploy/bootstrap.sh bench")
    figures = {}
    for name, versions in arguments.corpora.items():
        with tempfile.TemporaryDirectory(dir=arguments.work) as work:
            print(f"{name}...", file=sys.stderr, flush=True)
            figures[name] = measure(program, versions, arguments, pathlib.Path(work))
    if arguments.out:
        arguments.out.write_text(draw(figures), encoding="utf-8")
    lines = [f"- `{name}`: {corpus['text_bytes']:,} bytes" for name, corpus in figures.items()]
    for header, rows in tables(figures):
        lines += ["", *markdown(header, rows)]
    print_figures(arguments, figures, lines)


if __name__ == "__main__":
    try:
        main()
    except (BenchError, OSError, RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"migration_bench.py: {error}")
