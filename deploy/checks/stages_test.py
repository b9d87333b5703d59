#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that deploy/test.sh has a function for each stage in its head comment, and
accepts its name. Runs no stage: names are checked before any stage begins."""
import re
import subprocess
import sys

from source_tree import ROOT, read_text

SCRIPT = ROOT / "deploy" / "test.sh"
DESCRIBED = re.compile(r"^#   ([a-z]+) +\S", re.MULTILINE)
FUNCTION = re.compile(r"^stage_([a-z]+)\(\)", re.MULTILINE)
UNKNOWN = "no-such-stage"


def first_refused(*stages):
    """Returns the first of `stages` that the script rejects."""
    result = subprocess.run([SCRIPT, *stages], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            check=False)
    found = re.match("no stage '(.*)'; there are: ", result.stderr)
    if result.returncode != 2 or not found:
        sys.exit(f"stages_test: {SCRIPT} {stages} ended with {result.returncode}: {result.stderr}")
    return found.group(1)


def main():
    text = read_text(SCRIPT)
    described, functions = DESCRIBED.findall(text), FUNCTION.findall(text)
    if not described or sorted(described) != sorted(functions):
        sys.exit(f"stages_test: described are {described}, but there are {functions}")
    for stage in described:
        if first_refused(stage, UNKNOWN) != UNKNOWN:
            sys.exit(f"stages_test: {SCRIPT} does not take its stage {stage}")
    print(f"stages_test: {len(described)} stages")


if __name__ == "__main__":
    main()
