#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Applies bugs to a copy of the tree, one at a time, and prints those that no test
catches.

The bugs are in mutation_list.py. Works in a scratch git worktree of HEAD, or in the
--directory of an earlier run, which keeps its build. First the tests of all chosen bugs
must pass without any. Then for each bug: apply it, build only its tests, run them, revert
it. Run by name, not in continuous integration, as a full run takes hours. Continuous
integration runs --check, which only checks that each text occurs once.

usage: mutation_run.py [--check | --list | --levels BUILD,BUILD] [--only REGEX] [--sample N]
                       [--directory DIR] [--keep] [-j JOBS]
--levels prints the bugs that only nightly tests catch, given the release and the asan build,
and fails if those are more than a tenth.
--only takes a regular expression for "path: why"; --sample N takes each Nth.
Exit code 1: a bug survived, does not compile or does not apply.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from mutation_list import MUTATIONS
from source_tree import ROOT, read_text
from test_times import test_directories

TEST_SECONDS_MAX = 300
# Each source compiles alone, quickly, and lld links: a bug costs one compile and a few
# links. Tests of codecs would take too long without any optimisation.
PRESET = "dev"
OPTIONS = ["-DQUIRE_BENCHMARKS=OFF", "-DCMAKE_BUILD_TYPE=Quick",
           "-DCMAKE_CXX_FLAGS_QUICK=-O1", "-DCMAKE_C_FLAGS_QUICK=-O1"]


def problems(root, mutations):
    """Returns why mutations do not apply to the tree below root."""
    found = []
    for mutation in mutations:
        path = root / mutation.path
        text = (read_text(path) or "") if path.is_file() else ""
        count = text.count(mutation.old)
        if count != 1:
            found.append(f"{mutation.path}: must hold exactly once, but holds {count} times: "
                         f"{mutation.old!r} ({mutation.why})")
        if mutation.old == mutation.new:
            found.append(f"{mutation.path}: changes nothing ({mutation.why})")
    return found


def of_nightly_only(mutations, default_tests):
    """Returns the mutations of which no test is among `default_tests`."""
    return [mutation for mutation in mutations
            if not default_tests & set(mutation.tests.split())]


def print_levels(builds):
    default_tests = {name for build in builds
                     for name in test_directories(pathlib.Path(build), "default")}
    found = of_nightly_only(MUTATIONS, default_tests)
    for mutation in found:
        print(f"{mutation.path}: {mutation.why} [{mutation.tests}]")
    print(f"{len(MUTATIONS) - len(found)} of {len(MUTATIONS)} mutations name a test of the "
          f"default level ({len(default_tests)} tests)")
    return len(found) * 10 <= len(MUTATIONS)


class Scratch:
    """A tree to apply bugs to, and its build."""

    def __init__(self, root, jobs):
        self.root = root
        self.build = root / "build" / PRESET
        self.jobs = jobs

    def run(self, *command, seconds=None):
        """Returns the exit code and output; None after a timeout."""
        # One failure is enough.
        environment = {**os.environ, "GTEST_FAIL_FAST": "1"}
        with subprocess.Popen(command, cwd=self.root, stdin=subprocess.DEVNULL, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                return None, process.communicate()[0]
        return process.returncode, output

    def configure(self):
        code, output = self.run("cmake", "--preset", PRESET, *OPTIONS)
        if code != 0:
            sys.exit(f"mutation_run: cannot configure {self.root}:\n{output}")
        known = self.run("ninja", "-C", str(self.build), "-t", "targets", "all")[1]
        self.targets = set(re.findall(r"^([^/:\s]+): phony", known, re.MULTILINE))

    def build_tests(self, tests):
        # A script test has no target; it runs the programs.
        targets = {test if test in self.targets else program for test in tests
                   for program in ("quired", "quire")}
        return self.run("cmake", "--build", str(self.build), "-j", str(self.jobs), "--target",
                        *sorted(targets))

    def test(self, tests):
        pattern = "^(" + "|".join(sorted(tests)) + ")$"
        return self.run("ctest", "--test-dir", str(self.build), "-R", pattern, "-j",
                        str(self.jobs), "--no-tests=error", "--output-on-failure",
                        "--stop-on-failure", "--timeout", str(TEST_SECONDS_MAX),
                        seconds=TEST_SECONDS_MAX * len(tests) + 60)

    def outcome(self, mutation):
        """Returns "caught", or the error."""
        path = self.root / mutation.path
        text = path.read_text(encoding="utf-8")
        tests = mutation.tests.split()
        try:
            path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
            code, output = self.build_tests(tests)
            if code != 0:
                return "DOES NOT COMPILE\n" + output[-2000:]
            return "SURVIVED" if self.test(tests)[0] == 0 else "caught"
        finally:
            path.write_text(text, encoding="utf-8")


def run_all(scratch, mutations):
    """Prints the result of each; returns True if all were caught."""
    scratch.configure()
    tests = sorted({test for mutation in mutations for test in mutation.tests.split()})
    print(f"{len(mutations)} mutations; first {len(tests)} tests without any", flush=True)
    for step in (scratch.build_tests, scratch.test):
        code, output = step(tests)
        if code != 0:
            sys.exit(f"mutation_run: the tests must pass without a mutation:\n{output[-4000:]}")
    not_caught = 0
    for mutation in mutations:
        unfit = problems(scratch.root, [mutation])
        result = "DOES NOT APPLY" if unfit else scratch.outcome(mutation)
        not_caught += result != "caught"
        print(f"{result.splitlines()[0]:16} {mutation.path}: {mutation.why}", flush=True)
        for line in result.splitlines()[1:]:
            print(f"    {line}")
    print(f"{len(mutations) - not_caught} of {len(mutations)} caught")
    return not_caught == 0


def main():
    parser = argparse.ArgumentParser(description="runs the tests against known bugs")
    parser.add_argument("--check", action="store_true", help="only look whether each applies")
    parser.add_argument("--list", action="store_true", help="only print them")
    parser.add_argument("--levels", help="the release and the asan build, with a comma")
    parser.add_argument("--only", default="", help="regular expression for 'path: why'")
    parser.add_argument("--sample", type=int, default=1, help="each Nth of them")
    parser.add_argument("--directory", type=pathlib.Path,
                        help="an existing scratch tree, or where to make it")
    parser.add_argument("--keep", action="store_true", help="do not remove the scratch tree")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.check:
        found = problems(ROOT, MUTATIONS)
        for line in found:
            print(line)
        if found:
            sys.exit(f"mutation_run: {len(found)} of {len(MUTATIONS)} mutations do not apply; "
                     "fix mutation_list.py")
        print(f"mutation_run: {len(MUTATIONS)} mutations apply")
        return
    if options.levels:
        sys.exit(not print_levels(options.levels.split(",")))
    chosen = [mutation for mutation in MUTATIONS
              if re.search(options.only, f"{mutation.path}: {mutation.why}")][::options.sample]
    if options.list:
        for mutation in chosen:
            print(f"{mutation.path}: {mutation.why} [{mutation.tests}]")
        return
    if not chosen:
        sys.exit("mutation_run: no mutation matches --only")
    if options.directory is not None and (options.directory / "CMakePresets.json").is_file():
        sys.exit(not run_all(Scratch(options.directory.resolve(), options.jobs), chosen))
    with tempfile.TemporaryDirectory(prefix="quire-mutations-") as parent:
        tree = (options.directory or pathlib.Path(parent) / "tree").resolve()
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree), "HEAD"],
                       cwd=ROOT, check=True)
        try:
            all_caught = run_all(Scratch(tree, options.jobs), chosen)
        finally:
            if not options.keep:
                subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT,
                               check=False)
    sys.exit(not all_caught)


if __name__ == "__main__":
    main()
