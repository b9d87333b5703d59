#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader in Python against the golden files: it must agree with the program
on the good ones, and refuse the bad ones without falling over."""

import pathlib
import re
import subprocess
import sys

DIRECTORY = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = DIRECTORY.parents[1] / "testing" / "archive" / "golden"
READER = DIRECTORY / "reference" / "reference_reader.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(READER), *map(str, arguments)],
        capture_output=True,
        check=False,
    )


def example_faults():
    """The hex dumps at the end of FORMAT.md must be those golden files."""
    text = (DIRECTORY / "FORMAT.md").read_text()
    dumps = re.split(r"\n`([A-Za-z0-9-]+)`, \d+ bytes:\n", text)[1:]
    faults = [] if len(dumps) == 4 else ["FORMAT.md: expected two dumps"]
    for name, dump in zip(dumps[::2], dumps[1::2]):
        data = b""
        for line in re.findall(r"^    (?:[0-9a-f]{2}|  )  (.*)$", dump, re.MULTILINE):
            data += bytes.fromhex(re.match(r" *((?:[0-9a-f]{2}\b *)+)", line)[1])
        if data != (GOLDEN / "good" / "one-empty-document" / name).read_bytes():
            faults.append(f"FORMAT.md: the dump of {name} is not the golden file")
    return faults


def main():
    faults = example_faults()
    good = sorted((GOLDEN / "good").iterdir())
    for archive in good:
        output = b""
        for subcommand in ("check", "list"):
            result = run(subcommand, archive)
            output += result.stdout + result.stderr
        if output != (GOLDEN / "expected" / f"{archive.name}.txt").read_bytes():
            faults.append(f"{archive.name}: differs from what is expected")
    bad = sorted((GOLDEN / "bad").iterdir())
    for archive in bad:
        result = run("check", archive)
        if result.returncode != 1 or b"Traceback" in result.stderr:
            faults.append(f"{archive.name}: not refused properly: {result.stderr}")
    for name in ("mixed-rlz", "mixed-rlz-zz"):
        text = run("get", GOLDEN / "good" / name, 2).stdout
        if text != b"the first of that name":
            faults.append(f"{name}: document 2 is {text}")
    if not good or not bad:
        faults.append("no golden files")
    print("\n".join(faults) or f"{len(good)} read, {len(bad)} refused")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
