#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Damages inputs of every container at random, builds archives of them with and without
--keep-going, and reads these with the reference reader.

Checked of each archive:
  - A file that Python reads without an error is in it as Python reads it, or the build fails.
  - A file that is damaged for Python is not built without a message.
  - Text that is in the file and not in the archive is named: exit code 1.
  - Text that differs from what was put in, and from what the file has, is marked as doubtful
    or its document is named.
  - With --keep-going, the exit code 1 has its reason in the archive, documents whose part of
    the file ends before the damage are in it, and so is a second, undamaged input.
  - Programs end within a minute, with exit code 0 or 1.

usage: random_inputs.py QUIRED [--seconds N] [--seed N] [--only KIND] [--case N] [--save DIR]
Prints what it finds, and the options that repeat a case. Exit code 1 if it found anything.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import random_containers as containers

ROOT = pathlib.Path(__file__).resolve().parents[2]
READER = ROOT / "server" / "archive" / "reference" / "reference_reader.py"
GOOD_TEXT = b"an input without damage"
# A second input, by the format of the first.
GOOD_FILES = {"jsonl": b'{"id": "good", "text": "%b"}\n' % GOOD_TEXT,
              "csv": b"id,text\ngood,%b\n" % GOOD_TEXT}
RUN_SECONDS_MAX = 60
SHOWN_OF_A_KIND = 3
DOUBTFUL = re.compile(r'may be altered: "([^"\n]*)"(?: to "([^"\n]*)")?')


def make_documents(draw):
    """(name, text) of tokens."""
    number, documents = 0, []
    for name in range(draw.choice((1, 5, 40))):
        count = draw.choice((1, 3, 20, 200 if name < 3 else 5))
        documents.append((f"d{name:03}", b"".join(map(
            containers.token, range(number, number + count)))))
        number += count
    return documents


def damage(draw, data):
    """(damaged bytes, offset of the first change, description)."""
    at = draw.randrange(len(data))
    size = min(len(data) - at, draw.choice((1, 1, 2, 9, 100, 1 << draw.randrange(14))))
    kind = draw.choice(("flip", "flip", "flip", "set", "zero", "delete", "insert", "repeat", "cut",
                        "append", "append zeros", "swap"))
    before, middle, after = data[:at], data[at:at + size], data[at + size:]
    if kind == "flip":
        changed = before + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1:]
    elif kind == "set":
        changed = before + draw.randbytes(size) + after
    elif kind == "zero":
        changed = before + bytes(size) + after
    elif kind == "delete":
        changed = before + after
    elif kind == "insert":
        changed = before + draw.choice((draw.randbytes(size), b"\r\n", b"\n")) + middle + after
    elif kind == "repeat":
        changed = before + middle + middle + after
    elif kind == "cut":
        changed = before
    elif kind == "swap":
        changed = before + after[:size] + middle + after[size:]
    else:
        at = len(data)
        changed = data + (bytes(size) if kind == "append zeros" else draw.choice(
            (b"words at the end\n", draw.randbytes(size), data[:size])))
    first = next((i for i, (a, b) in enumerate(zip(data, changed)) if a != b),
                 min(len(data), len(changed)))
    return changed, first, f"{kind} at {at}, {size} bytes"


class Case:
    """One damaged file. `here`: what it has before the filter; None: not known."""

    def __init__(self, draw, form, kind):
        documents = make_documents(draw)
        self.made = made = containers.make(draw, form, kind, documents)
        self.original = dict(documents)
        self.here = made.plain if form not in ("zip", "wacz") else None
        self.safe_end = 0
        if made.plain and kind and draw.random() < 0.4:
            # The damage was there before it was compressed.
            self.here, first, self.what = damage(draw, made.plain)
            self.what += " before compression"
            self.data = containers.compress(kind, self.here)
            self.safe_end = first
        else:
            self.data, first, self.what = damage(draw, made.data)
            if kind:
                self.safe_end = max([end for stored, end in made.parts if stored <= first],
                                    default=0)
            else:
                self.safe_end = first
            if made.plain:
                self.here = containers.decompress(kind, self.data)
        self.is_damaged_stream = bool(made.plain) and self.here is None
        # As Python reads it.
        self.expected = None if self.is_damaged_stream else containers.read(
            form, self.here or b"", self.data)
        self.name = form + (f".{kind}" if kind else "")

    def safe_documents(self):
        """Names of documents before the damage."""
        return [name for name, end in zip(self.original, self.made.ends) if end <= self.safe_end]


def run(*command):
    """Exit code and messages."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, check=False,
                              timeout=RUN_SECONDS_MAX, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "none within a minute", b"", ""
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace")


def read_archive(path):
    """(id, text) of all documents, in order."""
    listed, texts = (run("/usr/bin/python3", READER, command, path) for command in ("list", "text"))
    if listed[0] or texts[0]:
        raise RuntimeError(f"the reference reader refuses the archive: {listed[2]}{texts[2]}")
    documents = []
    for line in listed[1].decode().splitlines():
        values = line.split(" ")
        if values[0] == "file":  # Deposited files follow the documents.
            break
        offset, size, name = values[1], values[2], values[6]
        text = texts[1][int(offset):int(offset) + int(size)]
        documents.append((re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), name[1:-1]),
                          text))
    return documents


class Build:
    """The archive of a case, in one mode."""

    def __init__(self, quired, case, directory, keep_going):
        self.case, self.keep_going = case, keep_going
        out = directory / f"out{keep_going:d}.quire"
        options = case.made.options + (["--keep-going"] if keep_going else [])
        self.code, _, self.messages = run(
            quired, "build", "--quiet", "--codec", "zstd:fast", "-o", out, *options,
            directory / case.made.file_name, directory / "good")
        self.documents = read_archive(out) if out.exists() else None
        self.unread_count = 0
        if keep_going and self.documents is not None:
            description = json.loads(run(quired, "inspect", "--json", out)[1])
            self.unread_count = description["unread_input_count"]
            self.messages += "\n".join(description.get("unread_inputs", []))

    def problems(self):
        """What is wrong with it."""
        if self.code not in (0, 1):
            yield f"exit code {self.code}"
        elif self.code == 1 and not self.messages.strip():
            yield "exit code 1 without a message"
        elif self.documents is None:
            if self.code == 0:
                yield "exit code 0 without an archive"
            elif self.keep_going:
                yield "--keep-going leaves no archive, though an input is good"
        elif self.code == 1 and not self.keep_going:
            yield "exit code 1 and an archive"
        else:
            yield from self._problems_of_the_archive()

    def _problems_of_the_archive(self):
        case = self.case
        good = [text for _, text in self.documents if text.rstrip(b"\n") == GOOD_TEXT]
        found = [(name, text) for name, text in self.documents
                 if text.rstrip(b"\n") != GOOD_TEXT]
        if len(good) != 1:
            yield "the good input is not in the archive once"
        if self.messages.strip() and b"".join(text for _, text in found) == case.data:
            # Not taken for a container: a warning, and every byte.
            return
        if self.code == 1 and not self.unread_count:
            yield "exit code 1, and the archive records no unread input"
        if self.code == 0 and case.is_damaged_stream and not self.messages.strip():
            yield "a damaged stream is passed without a message"
        if self.code == 0 and case.expected is not None:
            yield from self._differences(found)
            return
        yield from self._lost(found)
        yield from self._altered(found)
        if self.keep_going:
            stored = b"\n".join(text for _, text in found)
            lost = [name for name in case.safe_documents() if case.original[name] not in stored]
            if lost:
                yield f"{len(lost)} documents before the damage are not in the archive: {lost[0]}"

    def _differences(self, found):
        """From what Python reads."""
        expected = self.case.expected
        if self.case.made.form == "lines":
            if b"".join(text for _, text in found) != expected[0][1]:
                yield "the archive is not what the file has"
        elif sorted(found) != sorted(expected):
            yield f"{len(found)} documents differ from those that Python reads, {len(expected)}"

    def _lost(self, found):
        """Text that the file has and the archive has not, though the exit code is 0."""
        if self.code:
            return
        case = self.case
        there = containers.tokens_of(b"\n".join(text for _, text in found))
        here = containers.tokens_of(case.here if case.here is not None
                                    else b"".join(case.original.values()))
        if here - there:
            warned = ", with a warning" if self.messages.strip() else ""
            yield f"{len(here - there)} tokens are lost with exit code 0{warned}"

    def _altered(self, found):
        """Documents that nobody put in, and that are neither in the file nor marked."""
        case = self.case
        doubtful = self._doubtful(found)
        whole = set(case.original.values())
        for index, (name, text) in enumerate(found):
            begin = containers.TOKEN.search(text)
            body = text[begin.start():].rstrip(b"\r\n") if begin else text
            if body in whole or index in doubtful or self._names(name):
                continue
            if case.here is not None and (text.rstrip(b"\n") in case.here or b"\\" in case.here
                                          or b'"' in case.here):
                continue
            if case.made.form in ("warc", "arc", "wacz") and begin is None:
                # The record that describes the file.
                continue
            yield f"document {name!r} is altered or cut, and not marked"
            break

    def _names(self, name):
        return re.search(re.escape(name) + r"(?![0-9A-Za-z])", self.messages) is not None

    def _doubtful(self, found):
        """Indexes of documents that messages mark."""
        names = [name for name, _ in found]
        marked = set()
        for first, last in DOUBTFUL.findall(self.messages):
            # Long names are shown up to some byte.
            begins, ends = ([index for index, name in enumerate(names) if name.startswith(shown)]
                            for shown in (first, last or first))
            if begins:
                marked.update(range(begins[0], ends[-1] + 1 if ends else begins[0] + 1))
        return marked


class Driver:
    """Runs cases and collects what they find."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.counts = collections.Counter()
        self.codes = collections.Counter()

    def run_case(self, number):
        """Case `number` of the seed."""
        draw = random.Random(f"{self.arguments.seed} {number}")
        kinds = [kind for kind in containers.KINDS
                 if self.arguments.only in (None, kind[0], ".".join(filter(None, kind)))]
        case = Case(draw, *draw.choice(kinds))
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            (directory / case.made.file_name).write_bytes(case.data)
            (directory / "good").write_bytes(
                GOOD_FILES.get(case.made.form, GOOD_TEXT + b"\n"))
            for keep_going in (False, True):
                build = Build(self.arguments.quired, case, directory, keep_going)
                self.codes[(case.name, build.code)] += 1
                for problem in build.problems():
                    self.report(number, case, build, problem)

    def report(self, number, case, build, problem):
        """Prints the first of each kind."""
        mode = "--keep-going" if build.keep_going else "strict"
        kind = (case.name, mode, re.sub(r"\d+|'.*'", "#", problem.partition(": ")[0]))
        self.counts[kind] += 1
        if self.counts[kind] > SHOWN_OF_A_KIND:
            return
        print(f"{case.name}, {mode}: {problem}\n  {case.what}; exit code {build.code}; repeat with "
              f"--seed {self.arguments.seed} --case {number}"
              + (f" --only {self.arguments.only}" if self.arguments.only else ""))
        for line in build.messages.splitlines()[:4]:
            print(f"  | {line[:300]}")
        if self.arguments.save:
            os.makedirs(self.arguments.save, exist_ok=True)
            pathlib.Path(self.arguments.save, f"{number}-{case.made.file_name}").write_bytes(
                case.data)

    def run_all(self):
        """Runs cases for the time given."""
        end = time.monotonic() + self.arguments.seconds
        number = 0
        while time.monotonic() < end:
            self.run_case(number)
            number += 1
        return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("quired")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--only", help="a format such as tar, or with its filter: tar.gz")
    parser.add_argument("--case", type=int, help="only this case")
    parser.add_argument("--save", help="directory for the damaged files")
    driver = Driver(parser.parse_args())
    print(f"seed {driver.arguments.seed}", flush=True)
    if driver.arguments.case is None:
        count = driver.run_all()
    else:
        driver.run_case(driver.arguments.case)
        count = 1
    print(f"{count} cases, exit codes {dict(collections.Counter(code for _, code in driver.codes.elements()))}")
    for (name, mode, problem), found in sorted(driver.counts.items()):
        print(f"  {found} times: {name}, {mode}: {problem}")
    return 1 if driver.counts else 0


if __name__ == "__main__":
    sys.exit(main())
