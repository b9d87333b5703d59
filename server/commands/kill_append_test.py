#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGKILLs `quired append`, `compact` and `redact` in turn, at random times and as soon as the
new manifest is written. Afterwards the archive is the old or the new one, and whole;
only ARCHIVE.partial may remain, and the next append removes it and what the killed one
left in ARCHIVE. A reader verifies the archive all the time. Fails if none was killed.

archive_change_test, compact_test and redact_test kill at every system call of a writer in turn.

Usage: kill_append_test.py [SEED [KILLS]]; QUIRE_BINARY_DIR names the build directory.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from killed_command import kill_after
from test_level import SEED, rounds

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
KILL_COUNT = rounds(8, 30)
# Number of them that end while the new manifest is in ARCHIVE.partial.
KILLED_AT_THE_END_COUNT = 10


def write_documents(directory, generator, count, size):
    directory.mkdir()
    for i in range(count):
        text = " ".join(f"word{generator.randrange(2000)}" for _ in range(size // 8))
        (directory / f"{generator.randrange(1 << 40):012x}-{i}.txt").write_text(text)


def whole_info(archive):
    """Returns the description of the archive; fails unless all of it can be read."""
    subprocess.run([QUIRED, "verify", "--quiet", archive], check=True)
    inspected = subprocess.run([QUIRED, "inspect", "--json", archive],
                               check=True, stdout=subprocess.PIPE)
    return json.loads(inspected.stdout)


class Reader:
    """Verifies the archive until it is stopped."""

    def __init__(self, archive):
        self.archive = archive
        self.is_stopped = False
        self.count = 0
        self.failure = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_stopped:
            result = subprocess.run([QUIRED, "verify", "--quiet", self.archive], check=False,
                                    stderr=subprocess.PIPE, text=True)
            self.count += 1
            if result.returncode != 0:
                self.failure = result.stderr
                return

    def stop(self):
        self.is_stopped = True
        self.thread.join()
        if self.failure is not None:
            sys.exit(f"a reader found damage: {self.failure}")


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    kill_count = int(sys.argv[2]) if len(sys.argv) > 2 else KILL_COUNT
    print(f"seed {seed}")
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="quire-kill-append-") as scratch:
        directory = Path(scratch)
        archive = directory / "x.quire"
        write_documents(directory / "in", generator, 20, 20_000)
        subprocess.run([QUIRED, "build", "--quiet", "-o", archive, "--dictionary-size", "64KiB",
                        directory / "in"], check=True)
        write_documents(directory / "more", generator, 6, 40_000)
        command = [QUIRED, "append", "--quiet", "--segment-size", "50KiB", archive,
                   directory / "more"]
        compact = [QUIRED, "compact", "--all", "--quiet", "--reorder", "dedup", archive]
        ids = directory / "ids"
        ids.write_text(f"{sorted((directory / 'more').iterdir())[0].name}\n")
        redact = [QUIRED, "redact", "--quiet", archive, ids]
        # Each command, its number of new documents, and its time.
        writers = []
        for words, document_count in ((command, 6), (compact, 0), (redact, 0)):
            start = time.monotonic()
            subprocess.run(words, check=True)
            writers.append((words, document_count, time.monotonic() - start))
        info = whole_info(archive)
        reader = Reader(archive)
        killed_count = 0
        grown_count = 0
        try:
            for i in range(kill_count):
                words, document_count, duration = writers[i % len(writers)]
                if words is redact:
                    # The document to be removed may be gone.
                    subprocess.run(command, check=True)
                    info = whole_info(archive)
                seconds = (None if i < KILLED_AT_THE_END_COUNT
                           else generator.random() * duration * 1.05)
                was_killed = kill_after(words, seconds,
                                        directory / "x.quire.partial" / "MANIFEST")
                killed_count += was_killed
                left = set(os.listdir(directory))
                if not left <= {"in", "more", "ids", "x.quire", "x.quire.partial"}:
                    sys.exit(f"kill {i}: the killed writer left {sorted(left)}")
                found = whole_info(archive)
                if found["uuid"] == info["uuid"]:
                    if not was_killed:
                        sys.exit(f"writer {i}: succeeded and changed nothing")
                    continue
                grown_count += was_killed
                # Earlier states have the removed document.
                history = [] if words is redact else [info["uuid"]]
                if (found["document_count"] != info["document_count"] + document_count or
                        [state["uuid"] for state in found["history"][-1:]] != history):
                    sys.exit(f"kill {i}: neither the old nor the new archive: {found}")
                info = found
        finally:
            reader.stop()
        subprocess.run(command, check=True)
        info = whole_info(archive)
        left = sorted(os.listdir(directory))
        if left != ["ids", "in", "more", "x.quire"]:
            sys.exit(f"the last append left {left}")
        files = sum(path.stat().st_size for path in archive.iterdir())
        if files != info["stored_size_bytes"]:
            sys.exit(f"{files} bytes of files, {info['stored_size_bytes']} of the archive: "
                     "something was left")
        print(f"{killed_count} of {kill_count} writers of about {duration:.2f} s were killed, "
              f"{grown_count} of these after their last step; readers found {reader.count} "
              "whole archives")
        if killed_count < kill_count // 4:
            sys.exit("the writers were over before they could be killed")


if __name__ == "__main__":
    main()
