# SPDX-License-Identifier: Apache-2.0
"""The measuring runs of the codec benchmark: each gives rows as codec_table.py
describes them.
"""
import json
import pathlib
import shutil
import subprocess

from live_server import run_measured

# What codec_bench prints of a block size.
MEASURED = ("codec", "block_size_bytes", "text_bytes", "encoded_bytes", "payload_bytes",
            "index_bytes", "prepare_cpu_seconds", "encode_mb_per_second",
            "decode_mb_per_second", "ranges_per_second", "encoder_bytes", "decoder_bytes",
            "peak_memory_bytes")


def run_lines(command):
    """The JSON objects that a command prints, one a line."""
    output = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


class Dictionaries:
    """Chosen once for each text, method and size, and kept in a directory."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def get(self, text, method, size_bytes):
        """(path, the row's columns that the dictionary alone decides)"""
        text = pathlib.Path(text)
        name = f"{text.stem}-{text.stat().st_size}-{method}-{size_bytes}"
        path, sizes = self.directory / f"{name}.dictionary", self.directory / f"{name}.json"
        if not sizes.exists():
            report, = run_lines([self.program, "dictionary", text, "--method", method, "--size",
                                 size_bytes, "--output", path])
            columns = {
                "dictionary_method": method, "dictionary_size_bytes": size_bytes,
                **{name: report[name] for name in ("dictionary_xz_bytes", "dictionary_zlib_bytes",
                                                   "choose_cpu_seconds")}}
            sizes.write_text(json.dumps(columns))
        return path, json.loads(sizes.read_text())


class Codecs:
    """What codec_bench knows."""

    def __init__(self, program):
        self.program = program
        self.known = {row["codec"]: row for row in run_lines([program, "codecs"])}

    def canonical(self, spec):
        """As codec_bench prints it: "zlib" is "zlib:6", "rlz:max" has a number."""
        name, _, level = spec.partition(":")
        if name not in self.known:
            raise SystemExit(f"no codec {name}; there are: {', '.join(self.known)}")
        info = self.known[name]
        if info["level_min"] == info["level_max"] == 0:
            return name
        named = {"": "level_default", "default": "level_default", "fast": "level_min",
                 "max": "level_max"}
        return f"{name}:{info[named[level]] if level in named else level}"

    def needs_dictionary(self, spec):
        return self.known[spec.partition(":")[0]]["needs_dictionary"]

    def defaults(self):
        """Every codec at its default level, and the levels that are of interest."""
        wanted = []
        for name in self.known:
            wanted.append(name)
            wanted += [extra for extra in ("zlib:9", "zstd:3", "rlz:fast", "rlz:max")
                       if extra.partition(":")[0] == name]
        return list(dict.fromkeys(map(self.canonical, wanted)))

    def flagships(self):
        """What archives are built with, for their size on disk."""
        wanted = ["rlz", "rlz:max"] if "rlz" in self.known else ["rlz-zz"]
        return list(dict.fromkeys(map(self.canonical, wanted)))


def common_options(options):
    return ["--encode-threads", options.encode_threads, "--decode-seconds",
            options.decode_seconds, "--repetitions", options.repetitions]


def measure_blocks(codecs, dictionaries, options, text, spec, block_sizes, method, size_bytes):
    """Rows of kind `block`: one codec over one dictionary, each block size.
    `method` and `size_bytes` are None for codecs without dictionary."""
    command = [codecs.program, "measure", text, "--codec", spec, "--block-sizes",
               ",".join(f"{size}B" for size in block_sizes),
               "--encode-seconds", options.encode_seconds, *common_options(options)]
    columns = {}
    if size_bytes:
        path, columns = dictionaries.get(text, method, size_bytes)
        command += ["--dictionary", path]
    return [{"kind": "block", **columns, **{name: report[name] for name in MEASURED}}
            for report in run_lines(command)]


def measure_store(codecs, dictionaries, options, text, documents, spec, block_size, method,
                  size_bytes):
    """A row of kind `store`: whole documents at random under a codec."""
    path, columns = dictionaries.get(text, method, size_bytes)
    report, = run_lines([
        codecs.program, "measure", text, "--documents", documents, "--codec", spec,
        "--block-sizes", f"{block_size}B", "--dictionary", path, *common_options(options)])
    return {"kind": "store", **columns, **{name: report[name] for name in MEASURED},
            "documents_per_second": report["documents_per_second"]}


def middle(sizes):
    return sorted(sizes)[len(sizes) // 2]


def archive_sizes(block_sizes, dictionary_sizes):
    """(block size, dictionary size) of the archives that are built: all of either
    with the middle one of the other."""
    return [(block_size, size) for block_size in block_sizes for size in dictionary_sizes
            if block_size == middle(block_sizes) or size == middle(dictionary_sizes)]


def measure_archive(quired, source, text_bytes, spec, block_size, method, size_bytes, directory,
                    options=()):
    """A row of kind `archive`: all files that `quired build` writes."""
    archive = directory / "measured.quire"
    shutil.rmtree(archive, ignore_errors=True)
    _, cpu, peak, _ = run_measured(
        [quired, "build", "--quiet", "--codec", spec, "--block-size", f"{block_size}B",
         "--dictionary-size", f"{size_bytes}B", "--dictionary-method", method, *options,
         "-o", archive, source])
    stored = sum(file.stat().st_size for file in archive.rglob("*") if file.is_file())
    shutil.rmtree(archive)
    return {"kind": "archive", "codec": spec, "block_size_bytes": block_size,
            "dictionary_method": method, "dictionary_size_bytes": size_bytes,
            "text_bytes": text_bytes, "encoded_bytes": text_bytes, "payload_bytes": stored,
            "encode_mb_per_second": round(text_bytes / 1e6 / cpu, 3), "peak_memory_bytes": peak}


def spread_documents(rows, wanted_bytes):
    """Documents spread evenly over `rows` of (offset, size, id), about
    `wanted_bytes` in all; all of them if they have no more."""
    total = sum(size for _, size, _ in rows)
    if total <= wanted_bytes:
        return rows
    chosen, passed, taken = [], 0, 0
    for row in rows:
        passed += row[1]
        if taken * total < passed * wanted_bytes:
            chosen.append(row)
            taken += row[1]
    return chosen


def write_documents(stem, wanted_bytes, directory):
    """(text, index) in `directory`, of documents of STEM that are spread over it. Of
    those with the same id only the last counts, as in any store."""
    rows = {}
    with open(f"{stem}.tsv", encoding="utf-8", errors="surrogateescape") as index:
        for line in index:
            offset, size, name = line.rstrip("\n").split("\t", 2)
            rows[name] = (int(offset), int(size), name)
    name = f"documents-of-{pathlib.Path(stem).name}"
    text, index = directory / f"{name}.raw", directory / f"{name}.tsv"
    position = 0
    with open(f"{stem}.raw", "rb") as source, open(text, "wb") as raw, \
            open(index, "w", encoding="utf-8", errors="surrogateescape") as out:
        for offset, size, name in spread_documents(list(rows.values()), wanted_bytes):
            source.seek(offset)
            raw.write(source.read(size))
            out.write(f"{position}\t{size}\t{name}\n")
            position += size
    return text, index
