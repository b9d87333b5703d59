#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes RESULTS.md from the figures of the benchmarks; with --run measures them first.

    loadtest/results.py --out loadtest/RESULTS.md
        writes the page from the figures that are stored in loadtest/results
    loadtest/results.py --run --corpora /data --work /var/tmp/bench --out loadtest/RESULTS.md
        runs every benchmark, stores its figures, then writes the page
    loadtest/results.py --run --quick --from /tmp/quick --out /tmp/quick.md
        the same on small generated texts, as a test

--only NAME,... runs some of them. --corpora has make_corpus.py's webdocs and versions,
columns/, a directory of text columns, plain/, made by plain_collections.py, and may have
modules/, Python modules of peers (archive_bench.py --modules), training/, which
training_peers.py --setup makes, and outbackcdx.jar (capture_bench.py). A full run
takes about 25 minutes on two cores, plain_build an hour and more, and needs an idle machine.
wire_bench needs root, and archive_bench and device_bench need what `deploy/bootstrap.sh
bench` installs. The earlier figures of a failed benchmark are kept.
"""
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import typing

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "harness"))
# pylint: disable=wrong-import-position
from bench_json import write_json
from bench_setup import machine_load, make_parser

FORMAT = 2
TABLES_MAX = 10
STORED = HERE / "results"
ABOUT = "about.json"


class ResultsError(Exception):
    """Stored figures that cannot be shown."""


@dataclasses.dataclass
class Setting:
    """Inputs of the benchmarks."""
    build: pathlib.Path
    corpora: pathlib.Path
    # Archives and intermediate results; on the disk to be measured.
    work: pathlib.Path
    is_quick: bool

    def script(self, name, full, quick=("--smoke",)):
        """Returns the command of a script, with its options for a full or a quick run."""
        return [HERE / name, "--build", self.build, *(quick if self.is_quick else full)]


@dataclasses.dataclass
class Section:
    title: str
    text: str
    # Maps a Setting to the command, which prints one table in Markdown.
    command: typing.Callable
    # Limit on the time of the command.
    seconds_max: int = 1800
    # The section whose table gets the rows; empty: one of its own.
    joins: str = ""
    # False: the command generates its texts.
    needs_corpora: bool = True


def extraction_command(setting):
    program = setting.build / "bin" / "paper_extraction"
    if setting.is_quick:
        return [program, "--pieces", 1, "--round-us", 1, program]
    columns = sorted((setting.corpora / "columns").iterdir())
    return [program, setting.corpora / "webdocs256.raw", *columns]


def module_options(setting):
    modules = setting.corpora / "modules"
    return ["--modules", modules] if modules.is_dir() else []


def archive_options(setting):
    return ["--corpus", setting.corpora / "webdocs", "--slice", 256, *module_options(setting),
            *(["--cargo"] if shutil.which("cargo") else [])]


def capture_options(setting):
    jar = setting.corpora / "outbackcdx.jar"
    return ["--outbackcdx", jar] if jar.is_file() else []


def plain_collections(setting):
    return sorted(setting.corpora.glob("plain/*"))


def training_options(setting):
    python = setting.corpora / "training" / "bin" / "python"
    return ["--brief", "--write", *(["--python", python] if python.exists() else [])]


def wire_options(setting):
    columns = setting.corpora / "columns"
    return ["--corpus", f"webdocs={setting.corpora}/webdocs", "--lines",
            f"l_comment={columns}/l_comment", "--lines-max", 100_000, "--directory",
            setting.work / "wire", "--links", "100mbit,1gbit,loopback", "--seconds", 2]


# Benchmark -> its section, in the order of the page.
SECTIONS = {
    "archive_check": Section(
        "Build, serve, read back", "A plain build; every answer is compared with the source.",
        lambda setting: setting.script(
            "bench/archive_check.py", ["--corpus", setting.corpora / "webdocs"],
            ["--memory", "256MiB", "--dictionary-size", "256KiB", "--requests", 500])),
    "reach_bench": Section(
        "HTTP and Python", "The gateway, the server and the clients share the cores.",
        lambda setting: setting.script("bench/reach_bench.py", []), joins="archive_check",
        needs_corpora=False),
    "capture_bench": Section(
        "Captures by URL", "A generated crawl; OutbackCDX is its commit 43c60e8, warmed up.",
        lambda setting: setting.script("bench/capture_bench.py", capture_options(setting)),
        joins="archive_check", needs_corpora=False),
    "crawl_size_bench": Section(
        "Sizes of crawls", "Three crawls of a site whose pages change a little, HTML of plain/handbook; "
        "the other `.warc.zst` is made with the program zstd. Percent of the text of the records.",
        lambda setting: setting.script("bench/crawl_size_bench.py", [
            "--pages", setting.corpora / "plain" / "handbook", *module_options(setting)]),
        joins="archive_check"),
    "growth_bench": Section(
        "Archives that grow", "The last rows are of a generated site.",
        lambda setting: setting.script("bench/growth_bench.py", []), seconds_max=7200,
        joins="archive_check", needs_corpora=False),
    "remote_bench": Section(
        "Archives in object stores", "The store answers after a delay, on the same machine, and its "
        "connections cost a round more at first.",
        lambda setting: setting.script("bench/remote_bench.py", []), joins="archive_check",
        needs_corpora=False),
    "training_peers": Section(
        "A global shuffle", "Out of a store 30 ms away with a cache of a tenth of the stored bytes, "
        "and from disk; docs/training.md has all columns.",
        lambda setting: setting.script("bench/training_peers.py", training_options(setting),
                                       ["--brief", "--smoke"]),
        joins="archive_check"),
    "plan_check": Section(
        "Forecasts", "Plans of the collections of the next table.",
        lambda setting: setting.script(
            "bench/plan_check.py", ["--brief", "--corpus", *plain_collections(setting)],
            ["--brief", "--corpus", HERE / "bench"]), joins="archive_check"),
    "opening_bench": Section(
        "Starts", "All files are in the page cache.",
        lambda setting: setting.script(
            "bench/opening_bench.py", ["--text", setting.corpora / "webdocs256.raw"]),
        joins="archive_check"),
    "short_documents": Section(
        "Short documents", "Lines of the columns, 2,000 at a time, per core: Quire over gRPC with "
        "the least memory and with the text in its cache, the others within one process.",
        lambda setting: setting.script(
            "bench/short_documents.py", ["--columns", setting.corpora / "columns", "--modules",
                                         setting.corpora / "modules"]), joins="archive_check"),
    "security_bench": Section(
        "Tokens, log and TLS", "Cached reads; ratios of neighbouring runs.",
        lambda setting: setting.script(
            "bench/security_bench.py", ["--rounds", 9, "--requests", 40_000, "--sizes", "16KiB"],
            ["--requests", 200, "--rounds", 1, "--documents", 20, "--sizes", "256B"]),
        joins="archive_check", needs_corpora=False),
    "greedy_load": Section(
        "Clients that share a server", "4 ranges of 16 KiB in flight next to 1,000 of 1 MiB.",
        lambda setting: setting.script("hostile/greedy_load.py", []), joins="archive_check",
        needs_corpora=False),
    "operating_faults": Section(
        "Faults", "Calls that failed with two servers behind HAProxy; before: at 93cd3726.",
        lambda setting: setting.script(
            "hostile/operating_faults.py", ["--seconds", 60, "--before", STORED /
                                            "operating_faults_before.json"]),
        joins="archive_check", needs_corpora=False),
    "hostile_load": Section(
        "Opened streams", "What happens with an empty service is not the server's doing.",
        lambda setting: setting.script(
            "hostile/hostile_load.py",
            ["--only", "1,000 streams(, of an empty service|, of a server with much memory)?$"],
            ["--rounds", 1, "--requests", 300, "--documents", 100, "--only", "stops reading"]),
        joins="archive_check", needs_corpora=False),
    "plain_build": Section(
        "A plain build", "Sizes of whole archives in percent of the text; with `--grid` all off is "
        "`--reorder off --inflate off --dictionary-size 16MiB`, best that of the dictionary's size, "
        "reordering and inflating in all ways. zstd and xz compress the whole as one stream, without "
        "random access.",
        lambda setting: setting.script(
            "bench/plain_build.py", ["--grid", "--whole", "--report", *plain_collections(setting)]),
        seconds_max=4 * 3600),
    "archive_bench": Section(
        "Quire and its peers", "`webdocs256`, and documents of webdocs of the same size; one "
        "core's CPU time. Sizes count payload, dictionary and block index.",
        lambda setting: setting.script("bench/archive_bench.py", archive_options(setting))),
    "paper_rlz": Section(
        "Access Time Tradeoffs in Archive Compression", "The first rows compare with the "
        "authors' programs on the same text, the next three with Table 3, which is of 64 GiB of "
        "another text, the last two with the disk of Figure 2.",
        lambda setting: setting.script(
            "papers/paper_rlz.py", [setting.corpora / "webdocs256.raw"])),
    "paper_extraction": Section(
        "Random Read Speedup in Compression Enabled Storage Systems", "Ranges of blocks of "
        "256,000 bytes.", extraction_command),
    "paper_migration": Section(
        "Migratory Compression", "Gains are the growth of the compression factor.",
        lambda setting: setting.script(
            "papers/paper_migration.py", [setting.corpora / "versions"])),
    "paper_cost": Section(
        "Data Compression for Climate Data", "MB/s: the paper measures scientific data on 24 "
        "cores, these rows documents of webdocs.",
        lambda setting: setting.script(
            "papers/paper_cost.py", [setting.corpora / "webdocs256.raw"]), joins="paper_migration"),
    "paper_fsst": Section(
        "FSST: Fast Random Access String Compression", "Columns of the paper, each repeated to "
        "8 MiB; one thread.",
        lambda setting: setting.script("papers/paper_fsst.py", [setting.corpora / "columns"])),
    "api_limit": Section(
        "Cached reads compared with an empty handler", "Ranges of 16 KiB; medians and quartiles "
        "of rounds. The client shares the cores, so CPU times say more than rates.",
        lambda setting: setting.script("bench/api_limit.py", []), needs_corpora=False),
    "device_bench": Section(
        "A cold server compared with its disk and with decoding", "Past the page cache; server "
        "and client share the cores. Shares are of the slower of disk and decoding.",
        lambda setting: setting.script(
            "bench/device_bench.py", ["--corpus", setting.corpora / "webdocs256.raw", "--out",
                                      setting.work / "device", "--repetitions", 2])),
    "wire_bench": Section(
        "Wire encodings", "Single documents at random, 64 in flight; documents of webdocs have "
        "about 18 KB, those of l_comment 26 bytes.",
        lambda setting: setting.script("bench/wire_bench.py", wire_options(setting))),
}


def parse_arguments(words=None):
    parser = make_parser(__doc__, "quired", "quire", "quire-http", "quire-loadtest",
                         "codec_figures",
                         "empty_server", "paper_extraction")
    parser.add_argument("--out", type=pathlib.Path, help="the page (default: standard output)")
    parser.add_argument("--from", dest="stored", metavar="DIR", type=pathlib.Path, default=STORED,
                        help="where figures are stored (default: %(default)s)")
    parser.add_argument("--run", action="store_true", help="run the benchmarks first")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SECTIONS),
                        metavar="NAME,...", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true",
                        help="small texts and a moment of each: for tests")
    parser.add_argument("--corpora", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--work", type=pathlib.Path, metavar="DIR",
                        help="for archives, on the disk to be measured (default: a temporary "
                        "directory)")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.only if name not in SECTIONS]
    if unknown:
        parser.error(f'--only: no benchmark "{unknown[0]}"; there are {", ".join(SECTIONS)}')
    if arguments.run and arguments.quick and arguments.stored == STORED:
        parser.error("--quick: figures that mean nothing must not replace the stored ones; "
                     "give --from another directory")
    needing = [name for name in arguments.only if SECTIONS[name].needs_corpora]
    if arguments.run and not arguments.quick and not arguments.corpora and needing:
        parser.error(f"--run of {needing[0]} needs --corpora, or --quick for generated texts")
    return arguments


def describe_machine():
    models = [line.split(":", 1)[1].strip()
              for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (f"{os.cpu_count()} cores of {models[0] if models else 'an unknown processor'}, "
            f"{memory:.0f} GiB, Linux {platform.release()}")


def commit():
    result = subprocess.run(["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False, cwd=HERE)
    return result.stdout.strip() or "unknown"


def shown_command(words, setting):
    """Returns the command for the page, without the paths of this machine."""
    words = list(map(str, words))
    if "--build" in words:
        del words[words.index("--build"):words.index("--build") + 2]
    text = " ".join(words)
    for path, name in ((setting.work, "WORK"), (setting.corpora, "CORPORA"),
                       (f"{setting.build}/", ""), (f"{HERE.parent}/", "")):
        text = text.replace(str(path), name)
    return text


def run_benchmark(name, setting):
    """Returns the figures to be stored."""
    section, load = SECTIONS[name], machine_load()
    command = section.command(setting)
    result = subprocess.run(list(map(str, command)), check=True, timeout=section.seconds_max,
                            text=True, stdout=subprocess.PIPE)
    return {"format": FORMAT, "benchmark": name, "commit": commit(),
            "mode": "quick" if setting.is_quick else "full", "load": load,
            "command": shown_command(command, setting), "lines": result.stdout.splitlines()}


def measure(arguments, work):
    """Runs the benchmarks of --only, stores each as it ends; returns the names of failed ones."""
    arguments.stored.mkdir(parents=True, exist_ok=True)
    setting = Setting(arguments.build.resolve(), arguments.corpora or work, work,
                      arguments.quick)
    failed = []
    for name in arguments.only:
        print(f"{datetime.datetime.now():%H:%M:%S} {name}", file=sys.stderr, flush=True)
        try:
            write_json(arguments.stored / f"{name}.json", run_benchmark(name, setting))
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
    # Some benchmarks alone say nothing of what the others were run on.
    if set(arguments.only) == set(SECTIONS) or not (arguments.stored / ABOUT).exists():
        texts = [] if arguments.quick else sorted(setting.corpora.glob("*.raw"))
        write_json(arguments.stored / ABOUT, {
            "format": FORMAT, "machine": describe_machine(),
            "corpora": [f"`{path.stem}`: {path.stat().st_size:,} bytes" for path in texts]})
    return failed


def read_stored(path):
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: {error}") from error
    found = stored.get("format") if isinstance(stored, dict) else None
    if found != FORMAT:
        raise ResultsError(f"{path}: format must be {FORMAT}, got {found!r}")
    return stored


def joined_lines(name, parts):
    """Returns the lines of a section's figures; the rows of all parts are one table."""
    lines = list(parts[name]["lines"])
    header = next((line for line in lines if line.startswith("|")), None)
    for other, part in parts.items():
        if other == name:
            continue
        table = [line for line in part["lines"] if line.startswith("|")]
        if not table or table[0] != header:
            raise ResultsError(f"{other}.json: the table must begin as that of {name}: {header}")
        lines += table[2:]
    return lines


def section_lines(parts, is_of_one_commit):
    """Returns the lines of a section; `parts` has the stored figures, those of its table first."""
    titles, texts = [], []
    for name, stored in parts.items():
        origin = f"`{stored['command']}`" + ("" if is_of_one_commit else f" at {stored['commit']}")
        titles.append(SECTIONS[name].title)
        texts.append(f"{SECTIONS[name].text} {origin}; {stored['load']}.")
    first = next(iter(parts))
    return [f"## {'; '.join(titles)}", *texts, "", *joined_lines(first, parts), ""]


def sections_of(stored):
    """Returns the figures of each section, in the order of the page."""
    sections = {name: {name: stored[name]} for name, section in SECTIONS.items()
                if name in stored and section.joins not in stored}
    for name, section in SECTIONS.items():
        if name in stored and section.joins in stored:
            sections[section.joins][name] = stored[name]
    return sections.values()


def render(directory):
    """Returns the lines of the page."""
    about = read_stored(directory / ABOUT)
    stored = {name: read_stored(directory / f"{name}.json") for name in SECTIONS
              if (directory / f"{name}.json").exists()}
    if not stored:
        raise ResultsError(f"{directory}: no figures; loadtest/results.py --run measures them")
    commits = {each["commit"] for each in stored.values()}
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", "# Results",
             "Written by `loadtest/results.py`; do not edit. Sizes and counts are exact; times "
             "move by 10 to 25 % from run to run, so compare only figures of one table. The "
             "`NOTES.md` of each directory lists dropped experiments.", ""]
    if any(each["mode"] == "quick" for each in stored.values()):
        lines += ["- **Quick figures of generated texts: they show that the benchmarks work, and "
                  "mean nothing else.**"]
    lines += [f"- Machine: {about['machine']}. "
              + (f"Commit {min(commits)}." if len(commits) == 1 else
                 "Commits differ; each table names its own.")]
    lines += [f"- {corpus}" for corpus in about["corpora"]] + [""]
    for parts in sections_of(stored):
        lines += section_lines(parts, len(commits) == 1)
    missing = [name for name in SECTIONS if name not in stored]
    if missing:
        lines += [f"Not measured: {', '.join(missing)}.", ""]
    tables = sum(line.startswith("|---") for line in lines)
    if tables > TABLES_MAX:
        raise ResultsError(f"the page has {tables} tables; at most {TABLES_MAX} are allowed")
    return lines[:-1]


def main():
    arguments = parse_arguments()
    failed = []
    if arguments.run:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
            work = (arguments.work or pathlib.Path(scratch)).resolve()
            work.mkdir(parents=True, exist_ok=True)
            failed = measure(arguments, work)
    page = "\n".join(render(arguments.stored)) + "\n"
    if arguments.out:
        arguments.out.write_text(page, encoding="utf-8")
    else:
        print(page, end="")
    if failed:
        sys.exit(f"results.py: failed: {', '.join(failed)}; the page has what was stored before")


if __name__ == "__main__":
    try:
        main()
    except ResultsError as error:
        sys.exit(f"results.py: {error}")
