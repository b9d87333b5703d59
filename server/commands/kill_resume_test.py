#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGKILLs `quired recompress` and `quired build --resume` at random times until they
complete. The archive must then equal that of an undisturbed run, byte for byte, and
nothing else may remain. Also tests SIGTERM, a full disk, a second writer, and inputs
that changed.

Usage: kill_resume_test.py [SEED]; QUIRE_BINARY_DIR names the build directory,
QUIRE_KILL_COUNT the number of kills (8; 25 in deploy/test.sh nightly).
"""
import fcntl
import filecmp
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from killed_command import kill_after
from test_level import SEED, rounds

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
KILL_COUNT = int(os.environ.get("QUIRE_KILL_COUNT", rounds(8, 25)))
# With a dictionary; without; with a symbol table that is trained beforehand; and builds
# from files and from a compressed tar, of which one moves text.
CASES = [("recompress", "rlz", "off"), ("recompress", "xz:9", "off"),
         ("recompress", "fsst", "off"), ("build", "rlz", "off"), ("build", "zstd:9", "full"),
         ("build", "xz:9", "off")]


def make_inputs(directory, generator):
    """Makes the archive and the files that the commands read."""
    source = directory / "in"
    source.mkdir()
    for i in range(12):
        words = [f"word{generator.randrange(3000)}" for _ in range(20000)]
        (source / f"{i:02}.txt").write_text(" ".join(words))
    subprocess.run([QUIRED, "build", "--quiet", "-o", directory / "x.quire", "--codec", "lz4",
                    source], check=True)
    with tarfile.open(directory / "in.tar.gz", "w:gz") as tar:
        for name in sorted(os.listdir(source))[:4]:
            tar.add(source / name, arcname=f"tar/{name}")


def command(directory, output, case):
    name, codec, reorder = case
    sized = ["--dictionary-size", "256KiB"] if codec == "rlz" else []
    inputs = ([directory / "x.quire"] if name == "recompress" else
              ["--resume", directory / "in.tar.gz", directory / "in"])
    return [QUIRED, name, *inputs, "-o", output, "--codec", codec, *sized,
            "--segment-size", "700KiB", "--block-size", "16KiB", "--reorder", reorder,
            "--inflate", "off"]


def same(archive, other):
    names = sorted(os.listdir(archive))
    return (names == sorted(os.listdir(other)) and
            filecmp.cmpfiles(archive, other, names, shallow=False)[0] == names)


def kill_until_done(arguments, output, expected, duration, generator, kills_left):
    """Returns the number of kills."""
    kills = 0
    while kills < kills_left and not output.exists():
        # Each run reuses earlier results, so that it progresses further.
        kills += kill_after([*arguments, "--quiet"], generator.random() * duration * 0.7)
    if not output.exists():
        subprocess.run([*arguments, "--quiet"], check=True)
    partial = output.with_name(output.name + ".partial")
    # Killed around the time of its publication.
    for name in ("PARTIAL", "JOURNAL"):
        (output / name).unlink(missing_ok=True)
    if partial.exists() or not same(output, expected):
        sys.exit(f"{arguments}: after {kills} kills the archive is another")
    shutil.rmtree(output)
    return kills


def check_terminate(arguments, output, expected, duration):
    """Sends SIGTERM once there is a segment: the message says how to resume."""
    partial = output.with_name(output.name + ".partial")
    with subprocess.Popen([*arguments, "--quiet"], stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60 * duration + 60
        while (process.poll() is None and time.monotonic() < end and
               not (partial / "segment-00000000").exists()):
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        errors = process.stderr.read().decode()
        process.wait()
    # It may have ended already.
    if process.returncode == -signal.SIGTERM:
        if "repeat the command to resume" not in errors or not partial.exists():
            sys.exit(f"stopped, it said {errors}")
    elif process.returncode != 0:
        sys.exit(f"SIGTERM: {process.returncode} {errors}")
    if not output.exists():
        subprocess.run([*arguments, "--quiet"], check=True)
    if partial.exists() or not same(output, expected):
        sys.exit("after SIGTERM the archive is another")
    shutil.rmtree(output)


def limit_files(size_bytes):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))


def check_full_disk(arguments, output, expected):
    """A file that cannot grow fails as on a full disk."""
    size = (expected / "segment-00000000").stat().st_size // 2
    result = subprocess.run([*arguments, "--quiet"], stderr=subprocess.PIPE,
                            restore_signals=False, check=False,
                            preexec_fn=lambda: limit_files(size))
    if result.returncode != 1 or b"segment-00000000" not in result.stderr:
        sys.exit(f"full disk: {result.returncode} {result.stderr}")
    if output.exists():
        sys.exit("full disk: there is an archive")
    subprocess.run([*arguments, "--quiet"], check=True)
    if not same(output, expected):
        sys.exit("after a full disk the archive is another")
    shutil.rmtree(output)


def check_refused(arguments, directory, output, expected):
    """A changed input and another writer are named, and leave the finished part."""
    def fails_with(message):
        result = subprocess.run([*arguments, "--quiet"], stderr=subprocess.PIPE, check=False)
        if result.returncode != 1 or message not in result.stderr.decode():
            sys.exit(f"expected {message!r}: {result.returncode} {result.stderr}")
    partial = output.with_name(output.name + ".partial")
    size = (expected / "segment-00000000").stat().st_size // 2
    subprocess.run([*arguments, "--quiet"], restore_signals=False, check=False,
                   stderr=subprocess.DEVNULL, preexec_fn=lambda: limit_files(size))
    changed = directory / "in" / "05.txt"
    text = changed.read_bytes()
    status = changed.stat()
    changed.write_bytes(text[:-1] + b"!")
    fails_with(f'begun with input "{directory}/in" of 12 documents')
    changed.write_bytes(text)
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    with open(partial / "PARTIAL", "r+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        fails_with("another writer is at work")
    if not (partial / "segment-00000000").exists():
        sys.exit("the finished part is gone")
    subprocess.run([*arguments, "--quiet"], check=True)
    if partial.exists() or not same(output, expected):
        sys.exit("after a refusal the archive is another")
    shutil.rmtree(output)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    print(f"seed {seed}")
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="quire-kill-") as scratch:
        directory = Path(scratch)
        make_inputs(directory, generator)
        inputs = sorted(os.listdir(directory))
        output = directory / "out.quire"
        kills = 0
        for number, case in enumerate(CASES):
            expected = directory / "expected"
            start = time.monotonic()
            undisturbed = [word for word in command(directory, expected, case)
                           if word != "--resume"]
            subprocess.run([*undisturbed, "--quiet"], check=True)
            duration = time.monotonic() - start
            arguments = command(directory, output, case)
            check_terminate(arguments, output, expected, duration)
            if case[1] == "xz:9":
                check_full_disk(arguments, output, expected)
            if case == ("build", "xz:9", "off"):
                check_refused(arguments, directory, output, expected)
            share = KILL_COUNT * (number + 1) // len(CASES)
            while kills < share:
                kills += kill_until_done(arguments, output, expected, duration,
                                         generator, share - kills)
            shutil.rmtree(expected)
        if sorted(os.listdir(directory)) != inputs:
            sys.exit(f"left behind: {os.listdir(directory)}")
        print(f"killed {kills} times; every archive was the same in the end")


if __name__ == "__main__":
    main()
