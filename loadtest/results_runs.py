# SPDX-License-Identifier: Apache-2.0
"""The commands that results.py runs: one entry for each benchmark, in a full and in
a quick mode. Quick figures show that everything works and mean nothing else.
"""
import dataclasses
import pathlib
import random
import subprocess

from live_server import make_documents, write_corpus

HERE = pathlib.Path(__file__).parent
QUICK_DICTIONARY = "64KiB"


@dataclasses.dataclass
class Setting:
    """What the commands are made of."""
    build: pathlib.Path
    # STEM.raw, .tar and .tsv of the whole corpus; a slice of it, one file; a directory
    # of columns of strings.
    stem: str
    sample: pathlib.Path
    columns: pathlib.Path
    # Archives and intermediate results; on the disk to be measured.
    work: pathlib.Path
    is_quick: bool

    def script(self, name, *words):
        return [HERE / name, "--build", self.build, *words]

    def choose(self, full, quick):
        return quick if self.is_quick else full


def make_quick_corpus(directory):
    """(stem, sample, columns) of a small corpus of words."""
    stem, columns = f"{directory}/webdocs", directory / "columns"
    documents = make_documents(40, seed=3)
    write_corpus(documents, stem)
    columns.mkdir(exist_ok=True)
    draw = random.Random(4)
    words = b"".join(text for _, text in documents).split()
    for name, length in (("l_comment", 5), ("city", 1)):
        (columns / name).write_bytes(
            b"\n".join(b" ".join(draw.choices(words, k=length)) for _ in range(4000)) + b"\n")
    return stem, pathlib.Path(f"{stem}.raw"), columns


def archive_check(setting, out):
    options = setting.choose(["--memory", "512MiB"], [
        "--memory", "256MiB", "--dictionary-size", "256KiB", "--requests", 500])
    return [setting.script("archive_check.py", "--corpus", setting.stem, *options, "--json", out)]


def archive_sizes(setting, out):
    sample, whole = setting.sample, f"{setting.stem}.raw"
    large = "--inflate auto --inflate-member-size 6MiB"
    archives = setting.choose(
        [f"{sample},rlz,64KiB,16MiB", f"{sample},rlz:max,64KiB,16MiB",
         f"{sample},rlz:max,16KiB,16MiB", f"{sample},rlz:max,64KiB,64MiB",
         f"{whole},rlz,64KiB,64MiB", f"{whole},rlz:max,64KiB,192MiB",
         f"{setting.stem}.tar,rlz,64KiB,64MiB,{large}",
         f"{setting.stem}.tar,rlz:max,64KiB,192MiB,{large}"],
        [f"{sample},{codec},64KiB,{QUICK_DICTIONARY}" for codec in ("rlz", "rlz:max")])
    return [setting.script("archive_sizes.py", "--out", setting.work, *(
        word for archive in archives for word in ("--archive", archive)), "--json", out)]


def codec_bench(setting, out):
    options = setting.choose(
        ["--dictionary-sizes", "16MiB", "--encode-seconds", 0],
        ["--dictionary-sizes", QUICK_DICTIONARY, "--encode-seconds", 0.2, "--decode-seconds",
         0.001, "--repetitions", 1, "--block-sizes", "16KiB,64KiB,256KiB"])
    # codec_bench.py is given a stem: that of the sample, with the index and the tar of
    # the whole corpus where it is a slice.
    stem = ["--corpus", setting.stem]
    if setting.sample != pathlib.Path(f"{setting.stem}.raw"):
        stem += ["--slice", setting.sample.stem.removeprefix(pathlib.Path(setting.stem).name)]

    def run(codecs, method, *more):
        return setting.script("codec_bench.py", *stem, "--out", setting.work / "codec_bench",
                              "--codecs", codecs, "--dictionary-methods", method, "--archives",
                              "no", *options, *more)

    return [run("lz4,lz4hc:9,zlib:9,zstd:9,rlz:1,rlz:2,rlz:3", "coverage", "--peers",
                setting.choose("auto", "no")),
            run("rlz-uv,rlz-pv,rlz-zz:9,rlz-zzz:9", "uniform", "--peers", "no", "--json", out)]


def fsst_bench(setting, out):
    return [setting.script("fsst_bench.py", setting.columns, "--repetitions",
                           setting.choose(3, 1), "--seconds", setting.choose(0.01, 0.001),
                           "--json", out)]


def device_bench(setting, out):
    options = setting.choose(
        ["--seconds", 3, "--repetitions", 2],
        ["--seconds", 0.2, "--repetitions", 1, "--batch-size", 20, "--page-cache",
         "--dictionary-size", QUICK_DICTIONARY])
    return [setting.script("device_bench.py", "--corpus", setting.sample, "--out",
                           setting.work / "device", *options, "--json", out)]


def sweep(setting, out):
    options = setting.choose(
        ["--codecs", "copy,lz4,zlib:9,rlz-zz,rlz-zzz,rlz:2", "--dictionary-sizes", "4MiB",
         "--seconds", 1],
        ["--codecs", "lz4,rlz:2", "--dictionary-sizes", QUICK_DICTIONARY, "--seconds", 0.2,
         "--batch-size", 20, "--model-batch-size", 5])
    return [setting.script("sweep.py", "--corpus", setting.sample, "--out", setting.work / "sweep",
                           *options, "--json", out)]


def api_limit(setting, out):
    return [setting.script("api_limit.py", *setting.choose([], ["--smoke"]), "--json", out)]


def wire_bench(setting, out):
    options = setting.choose(["--links", "100mbit,1gbit,loopback", "--seconds", 3],
                             ["--links", "loopback", "--seconds", 1, "--requests", 300])
    return [setting.script("wire_bench.py", "--corpus", f"webdocs={setting.stem}", "--lines",
                           f"l_comment={setting.columns / 'l_comment'}", "--lines-max", 100_000,
                           "--build-options", f"--dictionary-size {QUICK_DICTIONARY}",
                           "--directory", setting.work / "wire", *options, "--json", out)]


def live_disk(setting, out):
    return [setting.script("live_disk.py", *setting.choose([], ["--smoke"]), "--json", out)]


def hostile_load(setting, out):
    options = setting.choose(["--rounds", 2], [
        "--rounds", 1, "--requests", 300, "--documents", 100, "--only", "stops reading"])
    return [setting.script("hostile_load.py", *options, "--json", out)]


def range_bench(setting, out):
    options = setting.choose([], ["--pieces", 2, "--round-us", 1])
    return [setting.script("range_bench.py", setting.sample, setting.columns, *options, "--out",
                           setting.work / "ranges.svg", "--json", out)]


def uncached_bench(setting, out):
    options = setting.choose([], ["--requests", 200, "--rounds", 1, "--dictionary-size",
                                  QUICK_DICTIONARY, "--memory", "128MiB"])
    return [setting.script("uncached_bench.py", setting.sample, *options, "--json", out)]


def migration_bench(setting, out):
    corpora = [f"webdocs={setting.stem}.raw"]
    options = setting.choose([], ["--sample-size", "512KiB", "--no-peers"])
    if not setting.is_quick:
        corpora.append(f"versions={pathlib.Path(setting.stem).with_name('versions.raw')}")
    return [setting.script("migration_bench.py", *corpora, *options, "--out",
                           setting.work / "migration.svg", "--json", out)]


def security_bench(setting, out):
    options = setting.choose([], ["--requests", 200, "--rounds", 1, "--documents", 20, "--sizes",
                                  "256B"])
    return [setting.script("security_bench.py", *options, "--json", out)]


def parse_tables(text):
    """{heading: rows} of what the report programs of server/storage print: tables in
    Markdown, some after a heading, others with their number for one. Rows are lists of
    cells, without the table's head."""
    tables, rows, heading = {}, None, ""
    for line in text.splitlines():
        if not line.startswith("|"):
            rows, heading = None, line.strip() or heading
        elif rows is None:
            rows = tables[heading or f"table {len(tables) + 1}"] = []
            heading = ""
        elif not line.startswith("|-"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return tables


def report_program(name):
    def command(setting, _out):
        return [[setting.build / "bin" / name]]
    return command


# Benchmark -> what makes its commands. The last command writes the JSON; of a program
# in PRINTED what it prints is parsed instead.
COMMANDS = {
    "archive_check": archive_check, "archive_sizes": archive_sizes, "codec_bench": codec_bench,
    "fsst_bench": fsst_bench, "device_bench": device_bench, "sweep": sweep, "api_limit": api_limit,
    "wire_bench": wire_bench, "disk_figures": report_program("disk_figures"),
    "live_disk": live_disk, "hostile_load": hostile_load, "range_bench": range_bench,
    "uncached_bench": uncached_bench,
    "security_bench": security_bench, "migration_bench": migration_bench,
}
PRINTED = {"disk_figures"}
# At most, for all commands of one benchmark.
SECONDS_MAX = 4 * 3600


def run_benchmark(name, setting, out):
    """The last command, as words. Its figures are in `out`, or returned as the second
    value if the program only prints them."""
    printed = None
    for command in COMMANDS[name](setting, out):
        words = [str(word) for word in command]
        result = subprocess.run(words, check=True, timeout=SECONDS_MAX, text=True,
                                stdout=subprocess.PIPE if name in PRINTED else None)
        if name in PRINTED:
            printed = parse_tables(result.stdout)
    return words, printed
