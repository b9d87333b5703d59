#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the sizes that `quired plan` forecasts with built archives, for each row of the
plan and each corpus, and the time of the plan with that of the builds.

    loadtest/bench/plan_check.py --corpus /data/releases /data/manual.tar

A ratio is the built size over the forecast. `--compare` checks all rows of `quired plan
--compare`, otherwise there is one. `--part N` plans from every N-th MiB of a corpus that
is one file, and gives the plan the size of the whole.
"""
import json
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, machine_load, make_parser
from disk_runs import directory_bytes
from markdown_table import markdown

PART_BYTES = 1 << 20
BOUND = 0.15


def parse_arguments(words=None):
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--corpus", metavar="PATH", type=pathlib.Path, nargs="+",
                        default=[pathlib.Path("/var/tmp/corpus/webdocs.tar")],
                        help="inputs of quired plan and build (default: %(default)s)")
    parser.add_argument("--compare", action="store_true", help="compare all candidates")
    parser.add_argument("--part", type=int, default=1, metavar="N",
                        help="plan from every N-th MiB of each corpus")
    parser.add_argument("--plan-options", default="", type=shlex.split,
                        help="further options of quired plan")
    parser.add_argument("--work", metavar="DIR", type=pathlib.Path, default="/var/tmp",
                        help="archives are built there, one at a time (default: %(default)s)")
    parser.add_argument("--brief", action="store_true", help="print only the summary")
    add_json_option(parser)
    return parser.parse_args(words)


def write_part(corpus, part, path):
    """Writes every part-th MiB from the first on; returns the size of the whole."""
    with open(corpus, "rb") as text, open(path, "wb") as out:
        for offset in range(0, corpus.stat().st_size, part * PART_BYTES):
            text.seek(offset)
            out.write(text.read(PART_BYTES))
    return corpus.stat().st_size


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(*words, **environment):
    """Returns the seconds that the command took, of a clock and of CPUs."""
    started, cpu_started = time.monotonic(), cpu_seconds()
    subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, **environment})
    return {"seconds": time.monotonic() - started, "cpu_seconds": cpu_seconds() - cpu_started}


def check(quired, corpus, arguments, scratch):
    """Returns (rows, times of the plan) of a corpus."""
    source, options = corpus, [*arguments.plan_options, *["--compare"] * arguments.compare]
    if arguments.part > 1:
        source = scratch / "part"
        options = [*options, "--text-size", f"{write_part(corpus, arguments.part, source)}B"]
    times = run(quired, "plan", source, *options, "--json", scratch / "plan.json",
                TMPDIR=str(scratch))
    plan = json.loads((scratch / "plan.json").read_text())
    rows = []
    for cell in plan["cells"]:
        archive = scratch / "built.quire"
        build_times = run(quired, "build", "--force", "--quiet",
                          *shlex.split(cell["arguments"]), "-o", archive, corpus)
        built = directory_bytes(archive)
        rows.append({
            "corpus": corpus.name, "arguments": cell["arguments"],
            "text_size_bytes": plan["text_size_bytes"],
            **{name: cell[name] for name in ("size_bytes", "size_bytes_min", "size_bytes_max")},
            "built_size_bytes": built, "ratio": built / cell["size_bytes"],
            "is_in_range": cell["size_bytes_min"] <= built <= cell["size_bytes_max"],
            "planned_seconds": cell["build_seconds"],
            **{f"build_{name}": value for name, value in build_times.items()}})
        print(f"{corpus.name}: {cell['arguments'] or '(defaults)'}: {rows[-1]['ratio']:.3f}",
              file=sys.stderr, flush=True)
    return rows, times


def summary(rows):
    """Returns the shares of the rows within BOUND, and within their range."""
    ratios = [row["ratio"] for row in rows]
    return {"cells": len(rows), "median": statistics.median(ratios),
            "within": sum(abs(ratio - 1) <= BOUND for ratio in ratios) / len(rows),
            "in_range": sum(row["is_in_range"] for row in rows) / len(rows),
            "worst": max(ratios, key=lambda ratio: abs(ratio - 1))}


def table(rows):
    """Returns Markdown lines."""
    def percent(row, name):
        return f"{100 * row[name] / row['text_size_bytes']:.3f}"

    return markdown(
        ["corpus", "options of build", "forecast %", "range %", "built %", "ratio", "in range",
         "build s: forecast", "built"],
        [[row["corpus"], row["arguments"] or "(defaults)", percent(row, "size_bytes"),
          f"{percent(row, 'size_bytes_min')}-{percent(row, 'size_bytes_max')}",
          percent(row, "built_size_bytes"), f"{row['ratio']:.3f}",
          "yes" if row["is_in_range"] else "no", f"{row['planned_seconds']:.0f}",
          f"{row['build_seconds']:.0f}"] for row in rows])


def brief_table(rows, plans):
    """Returns Markdown lines: the summary of table() and times_table()."""
    shares = summary(rows)
    plan_cpu = sum(times["cpu_seconds"] for times in plans.values())
    build_cpu = sum(row["build_cpu_seconds"] for row in rows)
    return markdown(["what", "figure"], [
        [f"`quired plan` of {len(plans)} collections: built size, of the forecast",
         f"{shares['median']:.3f}, at worst {shares['worst']:.3f}; "
         f"{100 * shares['in_range']:.0f} % in the range"],
        ["CPU of the plans, of that of the builds", f"{plan_cpu / max(build_cpu, 1e-9):.2f}"]])


def times_table(rows, plans):
    """Returns Markdown lines: times of each plan, and of the builds of its rows."""
    lines = []
    for corpus, times in plans.items():
        built = {name: sum(row[f"build_{name}"] for row in rows if row["corpus"] == corpus)
                 for name in times}
        lines.append([corpus, *(f"{values[name]:.1f}" for name in ("cpu_seconds", "seconds")
                                for values in (times, built)),
                      f"{times['cpu_seconds'] / max(built['cpu_seconds'], 1e-9):.2f}"])
    return markdown(["corpus", "plan CPU s", "builds CPU s", "plan s", "builds s", "CPU ratio"],
                    lines)


def main():
    arguments = parse_arguments()
    quired, = find_programs(arguments.build, "quired")
    load_before = machine_load()
    rows, plans = [], {}
    for corpus in arguments.corpus:
        if not corpus.exists():
            raise ValueError(f"no {corpus}; give --corpus")
        if arguments.part > 1 and not corpus.is_file():
            raise ValueError("--part needs a --corpus that is one file")
        with tempfile.TemporaryDirectory(dir=arguments.work) as scratch:
            found, plans[corpus.name] = check(
                quired, corpus, arguments, pathlib.Path(scratch))
            rows += found
    figures = {"format": 1, "part": arguments.part, "rows": rows, "plans": plans,
               "summary": summary(rows)}
    if arguments.brief:
        print_figures(arguments, figures, brief_table(rows, plans))
        return
    print_figures(arguments, figures, [
        f"before: {load_before}", "", *table(rows), "",
        *times_table(rows, plans), "",
        f"Of {len(rows)} sizes {100 * figures['summary']['within']:.0f} % are within "
        f"{100 * BOUND:.0f} % of the forecast, "
        f"{100 * figures['summary']['in_range']:.0f} % in its range; the worst ratio is "
        f"{figures['summary']['worst']:.3f}."])


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"plan_check.py: {error}")
