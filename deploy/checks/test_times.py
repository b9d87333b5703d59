#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sums the results and the times of builds and tests; deploy/test.sh calls it.

usage: test_times.py sums RECORDS [NAME=SECONDS...]
       test_times.py table [--top N] BUILD [JUNIT...]

sums: prints `N passed, N failed` of all JUnit files (*.xml) in the directory RECORDS. A file
*.failed there counts as one failed stage, unless a test of that stage failed; a file *.passed
as one that passed, unless ctest ran tests in that stage. A test that ctest could not run has
failed; a skipped one is counted apart. Exit code 1 if any failed, or if nothing passed.

table: prints seconds by directory and the N longest steps, as Markdown. Compiling and linking
come from BUILD/.ninja_log, tests from the JUnit files that `ctest --output-junit` wrote for BUILD.
The times are wall clock: with a job per core they are nearly CPU time.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

# ctest's states of a test that ran, and of one that says it cannot run here.
PASSED = "run"
SKIPPED = "notrun"
DISABLED = "disabled"


def read_junit(path):
    """Returns (name, status, seconds) of each test."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except xml.etree.ElementTree.ParseError as error:
        sys.exit(f"test_times: {path} is not a whole JUnit file ({error}); ctest was interrupted")
    return [(case.get("name"), status_of(case), float(case.get("time", "0")))
            for case in root.iter("testcase")]


def status_of(case):
    """Returns "passed", "failed" or "skipped"."""
    status = case.get("status")
    if status == PASSED:
        return "passed"
    skipped = case.find("skipped")
    # A program that is missing is "notrun" as well, but must not pass for a skipped test.
    if status == DISABLED or (status == SKIPPED and skipped is not None and
                              "SKIP_RETURN_CODE" in (skipped.get("message") or "")):
        return "skipped"
    return "failed"


def sums(records):
    """Returns the counts by status, and the names of what failed."""
    counts = collections.Counter()
    failed = []
    stages_with_failures = set()
    for path in sorted(records.glob("*.xml")):
        for name, status, _ in read_junit(path):
            counts[status] += 1
            if status == "failed":
                failed.append(f"{path.stem}: {name}")
                stages_with_failures.add(path.stem)
    for path in records.glob("*.passed"):
        if not path.with_suffix(".xml").exists():
            counts["passed"] += 1
    for path in sorted(records.glob("*.failed")):
        if path.stem not in stages_with_failures:
            counts["failed"] += 1
            failed.append(f"stage {path.stem}")
    return counts, failed


def print_sums(records):
    counts, failed = sums(records)
    for name in failed:
        print(f"FAILED {name}")
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    if counts["skipped"]:
        line += f", {counts['skipped']} skipped"
    print(line)
    return 0 if counts["passed"] and not counts["failed"] else 1


def read_ninja_log(build):
    """Returns (kind, directory, output, seconds) of the newest run of each step."""
    steps = {}
    for line in (build / ".ninja_log").read_text().splitlines():
        fields = line.split("\t")
        if len(fields) == 5:
            begun, ended, _, output, command = fields
            # Steps with several outputs have one line each, with the same hash.
            steps[command] = (output, (int(ended) - int(begun)) / 1000)
    found = []
    for output, seconds in steps.values():
        relative = output.removeprefix(f"{build.resolve()}/")
        directory, _, rest = relative.partition("/CMakeFiles/")
        if not rest:
            directory = str(pathlib.PurePath(relative).parent)
        kind = "compile" if re.search(r"\.(o|gch|pch)$", relative) else "link"
        found.append((kind, directory, relative, seconds))
    return found


def test_directories(build, label="."):
    """Returns the directory, relative to the source tree, of each ctest test of BUILD by name.

    label: only tests with a label that matches this regular expression, if not ".".
    """
    chosen = [] if label == "." else ["-L", f"^({label})$"]
    listing = json.loads(subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1", *chosen], check=True,
        stdout=subprocess.PIPE, text=True).stdout)
    graph = listing["backtraceGraph"]
    found = {}
    for test in listing["tests"]:
        node = graph["nodes"][test["backtrace"]]
        # From the function that adds the test to the CMakeLists.txt that calls it.
        while "parent" in node and not is_list(graph, node):
            node = graph["nodes"][node["parent"]]
        found[test["name"]] = relative_directory(build, graph["files"][node["file"]])
    return found


def is_list(graph, node):
    return graph["files"][node["file"]].endswith("CMakeLists.txt")


def relative_directory(build, path):
    """Returns the directory of a source, as ctest names it, relative to the source tree."""
    cache = (build / "CMakeCache.txt").read_text()
    source = re.search("^CMAKE_HOME_DIRECTORY:[^=]*=(.*)$", cache, re.MULTILINE).group(1)
    return os.path.relpath(pathlib.Path(source, path).parent, source)


def print_table(build, junits, top):
    steps = read_ninja_log(build)
    directories = test_directories(build) if junits else {}
    for path in junits:
        for name, _, seconds in read_junit(path):
            steps.append(("run", directories.get(name, "."), name, seconds))
    kinds = ("compile", "link", "run")
    by_directory = collections.defaultdict(collections.Counter)
    for kind, directory, _, seconds in steps:
        key = "/".join(pathlib.PurePath(directory).parts[:2]) or "."
        by_directory[key][kind] += seconds
        by_directory["all"][kind] += seconds
    print("| directory | compile s | link s | run s |\n|---|---|---|---|")
    for key, row in sorted(by_directory.items(), key=lambda item: -sum(item[1].values())):
        print(f"| {key} | " + " | ".join(f"{row[kind]:.0f}" for kind in kinds) + " |")
    print(f"\n| the {top} longest | | s |\n|---|---|---|")
    for kind, _, name, seconds in sorted(steps, key=lambda step: -step[3])[:top]:
        print(f"| {kind} | {name} | {seconds:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    summed = commands.add_parser("sums")
    summed.add_argument("records", type=pathlib.Path)
    table = commands.add_parser("table")
    table.add_argument("--top", type=int, default=20)
    table.add_argument("build", type=pathlib.Path)
    table.add_argument("junit", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "sums":
        sys.exit(print_sums(options.records))
    print_table(options.build, options.junit, options.top)


if __name__ == "__main__":
    main()
