#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `quired plan` predicts, compared with archives that are really built, served
and loaded: size, build time, and the rates of RANDOM, BATCH and FULL, for each codec,
dictionary and block size of the plan, on each device.

    loadtest/bench/plan_check.py --corpus /data/webdocs64.raw

Server and build have the first half of the cores, quire-loadtest the others, and the
plan is made for as many; over loopback, with nothing in memory and the smallest cache
that the server takes. RANDOM has 64 calls in flight, BATCH hands over 10,000 ranges
at once, both of 16 KiB; FULL reads all in encoding identity, over and over. Checksums of
all answers are checked.

Devices: `disk` is the one that --work lies on, past the page cache if its file system
can; `hdd` and `ssd` are the drives of that name in the plan, modelled by
`quired serve --device-model`.

A ratio is measured over predicted. Two kinds of measurements are marked and do not
count, as what the server can do is not known: `g`, where the load generator had no
processor time left and the server had; and `d`, where something else took more than a
tenth of the processors. `--part N` plans from every N-th MiB of the corpus and tells the plan how
large all of it is. Ends within --minutes: cells for which no time is left are left out,
and the last lines say how many.
"""
import argparse
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, machine_load, make_parser
from markdown_table import format_size, markdown
from disk_runs import RANGE_BYTES, Loader, cold_server, directory_bytes
from live_server import parse_size

IN_FLIGHT = 64
PART_BYTES = 1 << 20
ARCHIVE = "plan"
BATCH_SIZE = 10_000
# What quired plan --disk is given, and flags of the server.
DEVICES = {"disk": (None, ["--direct-io", "auto"]),
           "hdd": ("hdd", ["--device-model", "wd-red"]),
           "ssd": ("ssd", ["--device-model", "evo-850"])}
RATES = ("random", "batch", "full")
FIGURES = ("size", "build", *RATES)
BOUNDS = (0.15, 0.30)
# The least rate of random reads that an objective asks for, as a share of the fastest.
ENOUGH = {"archive": 0, "balanced": 2 / 3, "speed": 0.9}
RECOMMENDED_WITHIN = 0.10
# From here on processors count as busy.
BUSY = 0.9
# From here on what others take of the processors disturbs.
DISTURBING = 0.1
# Of starting and stopping a server.
SERVER_SECONDS = 4


def parse_list(text):
    return [word for word in text.split(",") if word]


def parse_devices(text):
    devices = parse_list(text)
    unknown = [name for name in devices if name not in DEVICES]
    if unknown or not devices:
        raise argparse.ArgumentTypeError(f"devices are {', '.join(DEVICES)}")
    return devices


def parse_arguments(words=None):
    parser = make_parser(__doc__, "quired", "quire-loadtest")
    parser.add_argument("--corpus", metavar="PATH", type=pathlib.Path,
                        default="/var/tmp/corpus/webdocs64.raw",
                        help="an input of quired plan and build (default: %(default)s)")
    parser.add_argument("--devices", type=parse_devices, default="disk,hdd",
                        help="of disk, hdd and ssd (default: %(default)s)")
    parser.add_argument("--codecs", type=parse_list, default=None,
                        help="of those in the plan (default: all)")
    parser.add_argument("--block-sizes", default=None, help="of those in the plan (default: all)",
                        type=lambda text: [parse_size(word) for word in parse_list(text)])
    parser.add_argument("--part", type=int, default=1, metavar="N",
                        help="plan from every N-th MiB of the corpus, which is then one file")
    parser.add_argument("--seconds", type=float, default=3, help="of each load")
    parser.add_argument("--repetitions", type=int, default=1, help="of each load; the median counts")
    parser.add_argument("--minutes", type=float, default=15, help="after which it ends")
    parser.add_argument("--work", metavar="DIR", type=pathlib.Path, default="/var/tmp",
                        help="archives are built there, one at a time (default: %(default)s)")
    add_json_option(parser)
    return parser.parse_args(words)


def split_cores(cores):
    """(server's, load generator's): halves, or the one that there is twice."""
    half = max(1, len(cores) // 2)
    return cores[:half], cores[half:] or cores


def busy_seconds(cores, stat):
    """Processor time of so many cores since the start of the machine, by a text of
    /proc/stat."""
    names = {f"cpu{core}" for core in cores}
    ticks = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name in names:
            # All but idle (4th) and iowait; guests are part of user time (proc(5)).
            ticks += sum(map(int, fields[:3])) + sum(map(int, fields[5:8]))
    return ticks / os.sysconf("SC_CLK_TCK")


def mark_of(server, generator, others):
    """Why a measurement does not count, `g` or `d`; empty if it does. Given are shares of
    processors: of the server's, of the generator's and of all, what they took."""
    if others > DISTURBING:
        return "d"
    return "g" if generator > BUSY > server else ""


def write_part(corpus, part, path):
    """Every part-th MiB, from the first on; returns the size of all of it."""
    with open(corpus, "rb") as text, open(path, "wb") as out:
        for offset in range(0, corpus.stat().st_size, part * PART_BYTES):
            text.seek(offset)
            out.write(text.read(PART_BYTES))
    return corpus.stat().st_size


def key_of(cell):
    return (cell["codec"], cell["block_size_bytes"], cell["dictionary_size_bytes"])


def predictions(cell):
    """{figure: value}: bytes, seconds, ranges a second, MB of text a second."""
    return {"size": cell["size_bytes"], "build": cell["build_seconds"],
            "random": cell["random"]["per_second"], "batch": cell["batch"]["per_second"],
            "full": cell["full_bytes_per_second"] / 1e6}


def choose(cells, objective):
    """Key of the cell that the objective recommends, of {key: (size, random rate)}: the
    smallest that is fast enough."""
    fastest = max(rate for _, rate in cells.values())
    fit = {key: cell for key, cell in cells.items() if cell[1] >= ENOUGH[objective] * fastest}
    return min(fit, key=lambda key: fit[key])


def judge(objective, predicted, measured):
    """How far the cell that the prediction recommends falls short of the best measured
    one, as a row; `times` is 1 where it is as good."""
    chosen, best = choose(predicted, objective), choose(measured, objective)
    size, rate = measured[chosen]
    fastest = max(rate for _, rate in measured.values())
    needed = measured[best][1] if objective == "speed" else ENOUGH[objective] * fastest
    times = max(needed / rate, 1.0 if objective == "speed" else size / measured[best][0])
    return {"objective": objective, "recommended": chosen, "best": best, "times": times,
            "is_within": times <= 1 + RECOMMENDED_WITHIN}


def shares(rows):
    """[{figure, cells, within: [share for each bound], worst ratio}] of rows that count;
    the last is of all rates and build times together."""
    result = []
    for name, figures in (*((figure, (figure,)) for figure in FIGURES),
                          ("build and rates", ("build", *RATES))):
        ratios = [row["ratio"] for row in rows
                  if row["figure"] in figures and not row["mark"]]
        if ratios:
            result.append({
                "figure": name, "cells": len(ratios),
                "within": [sum(abs(ratio - 1) <= bound for ratio in ratios) / len(ratios)
                           for bound in BOUNDS],
                "median": statistics.median(ratios),
                "worst": max(ratios, key=lambda ratio: abs(math.log(ratio)))})
    return result


class PlanCheck:
    def __init__(self, arguments, scratch):
        self.arguments, self.scratch = arguments, scratch
        self.quired, = find_programs(arguments.build, "quired")
        self.cores = sorted(os.sched_getaffinity(0))
        self.server_cores, generator_cores = split_cores(self.cores)
        self.generator_core_count = len(generator_cores)
        self.loader = Loader(arguments.build, self.on_cores(generator_cores))
        self.ends = time.monotonic() + 60 * arguments.minutes
        self.plans = {}
        self.rows = []
        self.left_out = 0

    def left_seconds(self):
        return self.ends - time.monotonic()

    def busy_seconds(self):
        return busy_seconds(self.cores, pathlib.Path("/proc/stat").read_text())

    @staticmethod
    def on_cores(cores):
        return ["taskset", "-c", ",".join(map(str, cores))]

    def run_on_server_cores(self, *words):
        subprocess.run([*self.on_cores(self.server_cores), *map(str, words)], check=True,
                       stdout=subprocess.DEVNULL, timeout=max(1, self.left_seconds()))

    def plan(self, device):
        """The plan of a device, as quired writes it."""
        disk = DEVICES[device][0] or self.scratch
        source, options = self.arguments.corpus, []
        if self.arguments.part > 1:
            source = self.scratch / "part"
            size = write_part(self.arguments.corpus, self.arguments.part, source)
            options = ["--text-size", f"{size}B"]
        path = self.scratch / f"{device}.json"
        started = time.monotonic()
        self.run_on_server_cores(
            self.quired, "plan", source, *options, "--disk", disk, "--network", "1000Gbit",
            "--cores", len(self.server_cores), "--read-size", f"{RANGE_BYTES}B",
            "--in-flight", IN_FLIGHT, "--json", path)
        plan = json.loads(path.read_text())
        say(f"plan for {device}: {time.monotonic() - started:.1f} s")
        return plan

    def is_wanted(self, cell):
        arguments = self.arguments
        return ((arguments.codecs is None or cell["codec"] in arguments.codecs)
                and (arguments.block_sizes is None
                     or cell["block_size_bytes"] in arguments.block_sizes))

    def build(self, cell):
        """(archive, seconds, mark)"""
        archive = self.scratch / f"{len(self.rows)}.quire"
        codec, block_size, dictionary_size = key_of(cell)
        options = ["--codec", codec, "--block-size", f"{block_size}B",
                   "--threads", len(self.server_cores)]
        if dictionary_size:
            options += ["--dictionary-size", f"{dictionary_size}B"]
        busy, own, started = self.busy_seconds(), children_seconds(), time.monotonic()
        self.run_on_server_cores(self.quired, "build", "--quiet", *options, "-o",
                                 archive, self.arguments.corpus)
        elapsed = time.monotonic() - started
        others = self.busy_seconds() - busy - (children_seconds() - own)
        return archive, elapsed, mark_of(1, 0, others / elapsed / len(self.cores))

    def load(self, server, mode):
        """(rate, the share of its processors that the server took, mark) of one load."""
        ranges = ["--range-size", f"{RANGE_BYTES}B"]
        options = {"random": [*ranges, "--in-flight", IN_FLIGHT],
                   "batch": [*ranges, "--batch-size", BATCH_SIZE],
                   "full": ["--streams", len(self.server_cores)]}[mode]
        busy, own, used = self.busy_seconds(), children_seconds(), server.cpu_seconds()
        started = time.monotonic()
        report = self.loader.report([
            ARCHIVE, "--server", server.address, "--mode", mode, "--duration",
            self.arguments.seconds, *options, "--json", "-"])
        elapsed = time.monotonic() - started
        used = server.cpu_seconds() - used
        others = self.busy_seconds() - busy - used - (children_seconds() - own)
        seconds = report["seconds"]
        share = used / seconds / len(self.server_cores)
        rate = (report["text_bytes"] / 1e6 if mode == "full" else report["right"]) / seconds
        return rate, share, mark_of(
            share, report["own_cpu_seconds"] / seconds / self.generator_core_count,
            others / elapsed / len(self.cores))

    def keep(self, device, cell, figure, measured, **more):
        predicted = predictions(cell)[figure]
        self.rows.append({
            "device": device, "codec": cell["codec"], "block_size_bytes": cell["block_size_bytes"],
            "dictionary_size_bytes": cell["dictionary_size_bytes"], "figure": figure,
            "predicted": predicted, "measured": measured, "ratio": measured / predicted,
            "mark": "", **more})

    def measure_rates(self, device, cell, archive):
        for mode in RATES:
            loads = []
            for seed in range(self.arguments.repetitions):
                with cold_server(self.quired, ARCHIVE, archive, *DEVICES[device][1],
                                 command=self.on_cores(self.server_cores)) as server:
                    loads.append(self.load(server, mode))
            rate, share, mark = sorted(loads)[len(loads) // 2]
            self.keep(device, cell, mode, rate, mark=mark, server_busy=share)

    def seconds_of(self, cell):
        """About how long a cell takes, on the long side."""
        loads = len(self.arguments.devices) * len(RATES) * self.arguments.repetitions
        return (2 * self.plans[self.arguments.devices[0]][key_of(cell)]["build_seconds"]
                + loads * (2 * self.arguments.seconds + SERVER_SECONDS))

    def run(self):
        for device in self.arguments.devices:
            plan = self.plan(device)
            self.plans[device] = {key_of(cell): cell for cell in plan["cells"]
                                  if self.is_wanted(cell)}
        cells = sorted(self.plans[self.arguments.devices[0]].values(), key=self.seconds_of)
        if not cells:
            raise ValueError("the plan has no such cell; see --codecs and --block-sizes")
        for number, cell in enumerate(cells):
            if self.seconds_of(cell) > self.left_seconds():
                self.left_out = len(cells) - number
                break
            archive, seconds, mark = self.build(cell)
            # Of equal worth on all devices, and counted once.
            self.keep(None, cell, "size", directory_bytes(archive))
            self.keep(None, cell, "build", seconds, mark=mark)
            for device in self.arguments.devices:
                self.measure_rates(device, self.plans[device][key_of(cell)], archive)
            shutil.rmtree(archive)
            say(f"{number + 1} of {len(cells)}: {name_of(cell)}: " + ", ".join(
                f"{row['figure']} {row['ratio']:.2f}{row['mark']}" for row in self.rows
                if key_of(row) == key_of(cell)))

    def judgements(self):
        """For each device and objective, of the cells that were measured."""
        rows = []
        by_key = {(row["device"], row["figure"], key_of(row)): row["measured"]
                  for row in self.rows}
        for device in self.arguments.devices:
            measured = {key: (by_key[None, "size", key], by_key[device, "random", key])
                        for key in self.plans[device] if (device, "random", key) in by_key}
            predicted = {key: (predictions(cell)["size"], predictions(cell)["random"])
                         for key, cell in self.plans[device].items() if key in measured}
            rows += [{"device": device, **judge(objective, predicted, measured)}
                     for objective in ENOUGH if measured]
        return rows


def children_seconds():
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def say(text):
    print(text, file=sys.stderr, flush=True)


def name_of(cell):
    codec, block_size, dictionary_size = key_of(cell)
    dictionary = f", dictionary {format_size(dictionary_size)}" if dictionary_size else ""
    return f"{codec}, blocks {format_size(block_size)}{dictionary}"


def table(check):
    """Markdown lines."""
    def text(row):
        if row is None:
            return "-"
        scale, unit = {"size": (1e6, " MB"), "build": (1, " s"), "full": (1, " MB/s")}.get(
            row["figure"], (1, ""))
        return (f"{row['predicted'] / scale:,.3g}{unit} → {row['measured'] / scale:,.3g}: "
                f"{row['ratio']:.2f}{' ' if row['mark'] else ''}{row['mark']}")

    columns = [(None, "size"), (None, "build"),
               *((device, mode) for device in check.arguments.devices for mode in RATES)]
    found = {(row["device"], row["figure"], key_of(row)): row for row in check.rows}
    cells = {key_of(row): row for row in check.rows}
    return markdown(
        ["predicted → measured: ratio",
         *(figure if device is None else f"{device} {figure}" for device, figure in columns)],
        [[name_of(cell), *(text(found.get((*column, key))) for column in columns)]
         for key, cell in cells.items()])


def share_table(rows):
    return markdown(
        ["figure", "cells", *(f"within {100 * bound:.0f} %" for bound in BOUNDS), "median ratio",
         "worst ratio"],
        [[row["figure"], str(row["cells"]), *(f"{100 * share:.0f} %" for share in row["within"]),
          f"{row['median']:.2f}", f"{row['worst']:.2f}"] for row in rows])


def judgement_lines(rows):
    def name(key):
        return name_of(dict(zip(("codec", "block_size_bytes", "dictionary_size_bytes"), key)))

    return [f"{row['device']}, {row['objective']}: recommended {name(row['recommended'])}; best "
            f"{name(row['best'])}: {row['times']:.2f} times as much, "
            f"{'within' if row['is_within'] else 'NOT within'} {100 * RECOMMENDED_WITHIN:.0f} %"
            for row in rows]


def main():
    arguments = parse_arguments()
    if not arguments.corpus.exists():
        raise ValueError(f"no {arguments.corpus}; give --corpus")
    if arguments.part > 1 and not arguments.corpus.is_file():
        raise ValueError("--part needs a --corpus that is one file")
    load_before = machine_load()
    with tempfile.TemporaryDirectory(dir=arguments.work) as scratch:
        check = PlanCheck(arguments, pathlib.Path(scratch))
        check.run()
    judgements = check.judgements()
    summary = shares(check.rows)
    figures = {
        "format": 1, "corpus": arguments.corpus.name, "part": arguments.part,
        "server_cores": len(check.server_cores), "seconds": arguments.seconds,
        "rows": check.rows, "shares": summary, "judgements": judgements,
        "cells_left_out": check.left_out}
    print_figures(arguments, figures, [
        f"{arguments.corpus.name}: server on {len(check.server_cores)} cores; before: {load_before}",
        "", *table(check), "", *share_table(summary), "", *judgement_lines(judgements),
        *([f"Left out as time was over: {check.left_out} cells; give more --minutes"]
          if check.left_out else [])])


if __name__ == "__main__":
    try:
        main()
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"plan_check.py: {error}")
