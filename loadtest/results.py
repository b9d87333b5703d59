#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes RESULTS.md from the figures of the benchmarks, and MODELLED.md, next to it, from those
of modelled disks; with --run measures them first.

    loadtest/results.py --out loadtest/RESULTS.md
        writes the page from the figures that are stored in loadtest/results
    loadtest/results.py --run --corpora /data --work /var/tmp/bench --out loadtest/RESULTS.md
        runs every benchmark, stores its figures, then writes the page
    loadtest/results.py --run --quick --from /tmp/quick --out /tmp/quick.md
        the same on a small generated text: shows that all of it works

--corpora has what make_corpus.py makes of webdocs and versions, and columns/, a directory of text
columns. A full run takes hours and wants an idle machine; wire_bench
needs root, and codec_bench and device_bench what `deploy/bootstrap.sh bench` installs.
Figures of a commit that is not the others' are marked in the page.
"""
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

from bench_json import write_json
from bench_setup import machine_load, make_parser
from codec_bench import commit, processor
from codec_table import markdown
from results_runs import COMMANDS, Setting, make_quick_corpus, run_benchmark
from results_tables import MODELLED, SECTIONS

FORMAT = 1
LINES_MAX = 200
HERE = pathlib.Path(__file__).parent
MODELLED_PAGE = "MODELLED.md"
STORED = HERE / "results"
ABOUT = "about.json"
# Drawings of a benchmark: where it leaves them in the work directory, and where they
# are kept.
PICTURES = {"codec_bench": {"codec_bench/pareto.svg": "codec_pareto.svg"},
            "sweep": {"sweep/modes.svg": "sweep_modes.svg"},
            "range_bench": {"ranges.svg": "range_bench.svg"},
            "migration_bench": {"migration.svg": "migration_bench.svg"}}


class ResultsError(Exception):
    """Stored figures that cannot be shown."""


def parse_arguments(words=None):
    parser = make_parser(__doc__, "quired", "quire", "quire-loadtest", "codec_bench",
                         "archive_bench", "api_limit", "disk_figures", "range_figures",
                         "migration_figures")
    parser.add_argument("--out", type=pathlib.Path, help=f"the page, and {MODELLED_PAGE} in its directory (default: standard output)")
    parser.add_argument("--from", dest="stored", metavar="DIR", type=pathlib.Path, default=STORED,
                        help="where figures are stored (default: %(default)s)")
    parser.add_argument("--run", action="store_true", help="run the benchmarks first")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(COMMANDS),
                        metavar="NAME,...", help=f"of {', '.join(COMMANDS)}")
    parser.add_argument("--quick", action="store_true",
                        help="small texts and a moment of each: for tests")
    parser.add_argument("--corpora", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--work", type=pathlib.Path, metavar="DIR",
                        help="for archives, on the disk to be measured (default: a temporary "
                        "directory)")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.only if name not in COMMANDS]
    if unknown:
        parser.error(f'--only: no benchmark "{unknown[0]}"; there are {", ".join(COMMANDS)}')
    if arguments.run and arguments.quick and arguments.stored == STORED:
        parser.error("--quick: figures that mean nothing must not replace the stored ones; "
                     "give --from another directory")
    if arguments.run and not arguments.quick and not arguments.corpora:
        parser.error("--run needs --corpora, or --quick for a generated text")
    return arguments


def describe_machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (f"{os.cpu_count()} cores of {processor()}, {memory:.0f} GiB, Linux "
            f"{platform.release()}")


def shown_command(words, setting, corpora):
    """For the page: without the paths of this machine."""
    hidden = ("--build", "--json", "--out")
    kept = [word for before, word in zip([""] + words, words)
            if word not in hidden and before not in hidden]
    text = " ".join(kept).replace(f"{HERE.parent}/", "")
    for path, name in ((setting.work, "WORK"), (corpora or setting.work, "CORPORA")):
        text = text.replace(str(path), name)
    return text


def measure(arguments, work):
    """Runs what --only names, and stores the figures of each as it ends."""
    arguments.stored.mkdir(parents=True, exist_ok=True)
    if arguments.quick:
        stem, sample, columns = make_quick_corpus(work)
    else:
        stem = f"{arguments.corpora}/webdocs"
        sample, columns = arguments.corpora / "webdocs256.raw", arguments.corpora / "columns"
    setting = Setting(arguments.build, stem, sample, columns, work, arguments.quick)
    failed = []
    for name in arguments.only:
        print(f"{datetime.datetime.now():%H:%M:%S} {name}", file=sys.stderr, flush=True)
        raw, load = work / f"{name}.json", machine_load()
        try:
            command, printed = run_benchmark(name, setting, raw)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        figures = json.loads(raw.read_text()) if printed is None else printed
        write_json(arguments.stored / f"{name}.json", {
            "format": FORMAT, "benchmark": name, "commit": commit(),
            "mode": "quick" if arguments.quick else "full", "load": load,
            "command": shown_command(command, setting, arguments.corpora), "figures": figures})
        for source, target in PICTURES.get(name, {}).items():
            if arguments.stored == STORED:
                shutil.copyfile(work / source, HERE / target)
    texts = [(path.name, path.stat().st_size) for path in (pathlib.Path(f"{stem}.raw"), sample)]
    write_json(arguments.stored / ABOUT, {
        "format": FORMAT, "machine": describe_machine(), "note": "",
        "corpora": [f"`{name}`: {size:,} bytes" for name, size in dict(texts).items()]})
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


def section_of(name, stored):
    try:
        return SECTIONS[name](stored["figures"])
    except (KeyError, TypeError, IndexError, StopIteration) as error:
        raise ResultsError(f"{name}.json: figures lack {error!r}; run the benchmark again: "
                           f"loadtest/results.py --run --only {name}") from error


def summary(sections):
    rows = [[aim.what, aim.aim, aim.measured if aim.is_met else f"**{aim.measured}**",
             "yes" if aim.is_met else "**no**"] for section in sections for aim in section.aims]
    return markdown(["what", "aim", "measured", "met"], rows)


def read_all(directory):
    """What is stored of each benchmark."""
    stored = {name: read_stored(directory / f"{name}.json") for name in SECTIONS
              if (directory / f"{name}.json").exists()}
    if not stored:
        raise ResultsError(f"{directory}: no figures; loadtest/results.py --run measures them")
    return stored


def section_lines(stored, sections, commits):
    lines = []
    for name, section in sections.items():
        each = stored[name]
        origin = f"`{each['command']}`" + (f" at {each['commit']}" if len(commits) > 1 else "")
        lines += [f"## {section.title}",
                  " ".join([section.text, *([each["note"]] if each.get("note") else []),
                            f"{origin}; {each['load']}."])]
        for header, rows in section.tables:
            lines += ["", *markdown(header, rows)]
        lines += [""]
    return lines


def render(directory):
    """The lines of the page, and those of the page of modelled disks."""
    about = read_stored(directory / ABOUT)
    stored = read_all(directory)
    sections = {name: section_of(name, each) for name, each in stored.items()}
    commits = {each["commit"] for each in stored.values()}
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", "# Results",
             "Written by `loadtest/results.py` from the JSON of the benchmarks; do not edit. What "
             "was tried and dropped is in the `NOTES.md` of each directory. "
             f"[{MODELLED_PAGE}]({MODELLED_PAGE}) has the modelled disks.", ""]
    if any(each["mode"] == "quick" for each in stored.values()):
        lines += ["- **Quick figures of a generated text: they show that the benchmarks work, and "
                  "mean nothing else.**"]
    lines += [f"- Machine: {about['machine']}. "
              + ("Commits differ; each table names its own." if len(commits) > 1 else
                 f"Commit {min(commits)}.")]
    lines += [f"- {corpus}" for corpus in about["corpora"]]
    lines += [f"- {about['note']}"] if about["note"] else []
    lines += ["", "## Aims and results", *summary(sections.values()), ""]
    lines += section_lines(stored, {name: section for name, section in sections.items()
                                    if name not in MODELLED}, commits)
    missing = [name for name in SECTIONS if name not in stored]
    if missing:
        lines += [f"Not measured: {', '.join(missing)}.", ""]
    if len(lines) - 1 > LINES_MAX:
        raise ResultsError(f"the page has {len(lines) - 1} lines and must have at most {LINES_MAX}; "
                           "shorten a table in results_tables.py")
    modelled = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", "# Modelled disks",
                "Written by `loadtest/results.py`, as RESULTS.md, whose aims count these, too.", ""]
    modelled += section_lines(stored, {name: section for name, section in sections.items()
                                       if name in MODELLED}, commits)
    return lines[:-1], modelled[:-1]


def main():
    arguments = parse_arguments()
    failed = []
    if arguments.run:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
            work = arguments.work or pathlib.Path(scratch)
            work.mkdir(parents=True, exist_ok=True)
            failed = measure(arguments, work)
    page, modelled = ("\n".join(lines) + "\n" for lines in render(arguments.stored))
    if arguments.out:
        arguments.out.write_text(page, encoding="utf-8")
        arguments.out.with_name(MODELLED_PAGE).write_text(modelled, encoding="utf-8")
    else:
        print(page, modelled, sep="\n", end="")
    if failed:
        sys.exit(f"results.py: failed: {', '.join(failed)}; the page has what was stored before")


if __name__ == "__main__":
    try:
        main()
    except ResultsError as error:
        sys.exit(f"results.py: {error}")
