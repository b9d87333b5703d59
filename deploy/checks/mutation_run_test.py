#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the list of mutation_run.py fits the tree: each text occurs exactly once.

First proves on its own files that this check can fail.
"""
import pathlib
import subprocess
import sys
import tempfile

from mutation_list import Mutation
from mutation_run import problems


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / "a.cc").write_text("one two two")
        sample = [Mutation("a.cc", old, new, "t", "why") for old, new in
                  (("one", "1"), ("two", "2"), ("three", "3"), ("one", "one"))]
        found = problems(root, [*sample, Mutation("b.cc", "one", "1", "t", "why")])
    expected = ("holds 2 times", "holds 0 times", "changes nothing", "b.cc: must hold")
    if len(found) != len(expected) or any(e not in f for e, f in zip(expected, found)):
        sys.exit(f"mutation_run_test: expected {expected}, found {found}")
    script = pathlib.Path(__file__).with_name("mutation_run.py")
    sys.exit(subprocess.run([sys.executable, script, "--check"], check=False).returncode)


if __name__ == "__main__":
    main()
