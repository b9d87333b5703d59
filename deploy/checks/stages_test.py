#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that deploy/test.sh has a function for each stage in its head comment and accepts its
name, and that each label of a test belongs to a stage. Runs no stage: names are checked
before any stage begins.

usage: stages_test.py [BUILD]
With the directory of a build without sanitizers: also that a stage runs each of its tests.
"""
import json
import re
import subprocess
import sys

from source_tree import ROOT, list_files, read_text

SCRIPT = ROOT / "deploy" / "test.sh"
DESCRIBED = re.compile(r"^#   ([a-z]+) +\S", re.MULTILINE)
FUNCTION = re.compile(r"^stage_([a-z]+)\(\)", re.MULTILINE)
LABELS = re.compile(r"\bLABELS\s+((?:[a-z_]+\s*)+)")
UNKNOWN = "no-such-stage"
# The default level runs a test with none of these: on the release build if it is a script or
# has the label `measured`, else in the stage `checked`.
STAGE_OF_LABEL = {"tree": "tree", "nightly": "ctest", "smoke": "ctest", "ecosystem": "ecosystem"}
# Labels that leave the level as it is: these leave tests out of sanitizers' builds, or choose
# the suites of the stage `races`.
OTHER_LABELS = {"default", "suite", "fuzz_replay", "measured", "foreign", "killed", "tsan"}


def first_refused(*stages):
    """Returns the first of `stages` that the script rejects."""
    result = subprocess.run([SCRIPT, *stages], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            check=False)
    found = re.match("no stage '(.*)'; there are: ", result.stderr)
    if result.returncode != 2 or not found:
        sys.exit(f"stages_test: {SCRIPT} {stages} ended with {result.returncode}: {result.stderr}")
    return found.group(1)


def unknown_labels(text):
    """Returns the labels in the text of a CMakeLists.txt that no stage stands for."""
    words = {word for found in LABELS.findall(re.sub("#.*", "", text)) for word in found.split()}
    return sorted(words - STAGE_OF_LABEL.keys() - OTHER_LABELS)


def level_of(labels):
    """Returns the stage that runs a test of the release build, or None."""
    for label in labels:
        if label in STAGE_OF_LABEL:
            return STAGE_OF_LABEL[label]
    if "default" in labels:
        return "programs"
    return "checked" if "suite" in labels and "measured" not in labels else None


def check_levels(build):
    tests = json.loads(subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
        stdout=subprocess.PIPE, text=True).stdout)["tests"]
    counts = {}
    for test in tests:
        labels = next((entry["value"] for entry in test["properties"]
                       if entry["name"] == "LABELS"), [])
        stage = level_of(labels)
        if stage is None:
            sys.exit(f"stages_test: no stage runs {test['name']}, whose labels are {labels}")
        counts[stage] = counts.get(stage, 0) + 1
    if not counts.get("programs") or not counts.get("checked"):
        sys.exit(f"stages_test: the default level runs nothing: {counts}")
    print(f"stages_test: tests by stage: {counts}")


def main():
    text = read_text(SCRIPT)
    described, functions = DESCRIBED.findall(text), FUNCTION.findall(text)
    if not described or sorted(described) != sorted(functions):
        sys.exit(f"stages_test: described are {described}, but there are {functions}")
    for stage in described:
        if first_refused(stage, UNKNOWN) != UNKNOWN:
            sys.exit(f"stages_test: {SCRIPT} does not take its stage {stage}")
    for stage in STAGE_OF_LABEL.values():
        if stage not in described:
            sys.exit(f"stages_test: there is no stage {stage}")
    if unknown_labels("quire_test(a LABELS tsan strange\n DEPS b)") != ["strange"]:
        sys.exit("stages_test: finds no unknown label in its own bad sample")
    if level_of(["measured", "suite"]) is not None or level_of(["suite", "tsan"]) != "checked":
        sys.exit("stages_test: misjudges its own samples of labels")
    for path in list_files(ROOT):
        if path.endswith("CMakeLists.txt"):
            for label in unknown_labels(read_text(ROOT / path)):
                sys.exit(f"stages_test: {path}: no stage stands for the label {label}")
    print(f"stages_test: {len(described)} stages")
    if len(sys.argv) > 1:
        check_levels(sys.argv[1])


if __name__ == "__main__":
    main()
