#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGKILLs `quired build`, first as soon as it has begun to write, then at random times.
Afterwards the archive is absent or complete (if one existed: the old or the new one,
complete), only the partial archive may remain, and the next build removes it. Half of
the builds reorder the text, with so little memory that they sort in files. Fails if no
build was killed, or none left a partial archive.

Usage: kill_build_test.py [SEED]; QUIRE_BINARY_DIR names the build directory.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from killed_command import kill_after
from test_level import SEED, rounds

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
KILL_COUNT = rounds(10, 20)
# With and without an archive to replace, and both kinds of builds.
KILLED_AT_THE_START_COUNT = 4
REORDER_MODES = ("off", "full")


def make_input(directory, generator):
    directory.mkdir()
    words = []
    for i in range(8):
        # Half of the previous document, and as much new text.
        words = words[7500:] + [f"word{generator.randrange(2000)}"
                                for _ in range(7500 if words else 15000)]
        (directory / f"{i:02}.txt").write_text(" ".join(words))


def build_command(archive, source, *options):
    return [QUIRED, "build", "--quiet", "-o", archive, "--dictionary-size",
            "64KiB", "--segment-size", "200KiB",
            *options, source]


def uuid_of_whole(archive):
    """Returns the archive's uuid; fails unless all of it can be read."""
    subprocess.run([QUIRED, "verify", "--quiet", archive], check=True)
    inspected = subprocess.run([QUIRED, "inspect", "--json", archive],
                               check=True, stdout=subprocess.PIPE)
    return json.loads(inspected.stdout)["uuid"]


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    print(f"seed {seed}")
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="quire-kill-") as scratch:
        directory = Path(scratch)
        source = directory / "in"
        make_input(source, generator)
        new = directory / "new.quire"
        durations = {}
        new_uuids = {}
        for reorder in REORDER_MODES:
            start = time.monotonic()
            subprocess.run(build_command(new, source, "--force", "--reorder", reorder),
                           check=True)
            durations[reorder] = time.monotonic() - start
            new_uuids[reorder] = uuid_of_whole(new)
        killed_count = 0
        leftover_count = 0
        for i in range(KILL_COUNT):
            # Every other time there is an archive to replace.
            archive = directory / "x.quire"
            reorder = REORDER_MODES[i // 2 % 2]
            new_uuid = new_uuids[reorder]
            allowed = {None, new_uuid}
            options = ["--reorder", reorder]
            if i % 2 == 1:
                subprocess.run(
                    [QUIRED, "build", "--quiet", "--force", "-o", archive,
                     "--codec", "lz4", source], check=True)
                allowed = {uuid_of_whole(archive), new_uuid}
                options.append("--force")
            partial = directory / "x.quire.partial"
            seconds = (None if i < KILLED_AT_THE_START_COUNT else
                       generator.random() * durations[reorder] * 1.05)
            killed_count += kill_after(build_command(archive, source, *options),
                                       seconds, partial)
            leftover_count += partial.exists()
            left = set(os.listdir(directory))
            if not left <= {"in", "new.quire", "x.quire", "x.quire.partial"}:
                sys.exit(f"kill {i}: the killed build left {sorted(left)}")
            found = uuid_of_whole(archive) if archive.exists() else None
            if found not in allowed:
                sys.exit(f"kill {i}: found archive {found}, not {allowed}")
            subprocess.run(build_command(archive, source, "--force", "--reorder",
                                         reorder), check=True)
            if uuid_of_whole(archive) != new_uuid:
                sys.exit(f"kill {i}: the next build made another archive")
            left = sorted(os.listdir(directory))
            if left != ["in", "new.quire", "x.quire"]:
                sys.exit(f"kill {i}: the next build left {left}")
            subprocess.run(["rm", "-r", archive], check=True)
        print(f"{killed_count} of {KILL_COUNT} builds of about "
              f"{max(durations.values()):.2f} s were "
              f"killed, {leftover_count} left something; every archive was "
              "absent or whole")
        if min(killed_count, leftover_count) < KILLED_AT_THE_START_COUNT:
            sys.exit("the builds were over before they could be killed")


if __name__ == "__main__":
    main()
