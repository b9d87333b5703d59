#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGKILLs `quired recompress` at random moments, over and over, until it has
been through; then the archive must be the one that an undisturbed run makes, byte
for byte, and nothing may be left besides. Also SIGTERM, and a full disk.

Usage: kill_recompress_test.py [SEED]; QUIRE_BINARY_DIR names the build directory,
QUIRE_KILL_COUNT how many times to kill (20).
"""
import filecmp
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
KILL_COUNT = int(os.environ.get("QUIRE_KILL_COUNT", "20"))
# With a dictionary; without; one whose symbol table is trained beforehand.
CODECS = ["rlz", "xz:9", "fsst"]


def make_archive(archive, directory, generator):
    source = directory / "in"
    source.mkdir()
    for i in range(12):
        words = [f"word{generator.randrange(3000)}" for _ in range(20000)]
        (source / f"{i:02}.txt").write_text(" ".join(words))
    subprocess.run([QUIRED, "build", "--quiet", "-o", archive, "--codec", "lz4",
                    source], check=True)
    shutil.rmtree(source)


def command(archive, output, codec):
    sized = ["--dictionary-size", "256KiB"] if codec == "rlz" else []
    return [QUIRED, "recompress", archive, "-o", output, "--codec", codec, *sized,
            "--segment-size", "700KiB", "--block-size", "16KiB", "--reorder", "off",
            "--inflate", "off"]


def same(archive, other):
    names = sorted(os.listdir(archive))
    return (names == sorted(os.listdir(other)) and
            filecmp.cmpfiles(archive, other, names, shallow=False)[0] == names)


def kill_after(arguments, seconds):
    """True if it was killed after so long, false if it was done before."""
    with subprocess.Popen([*arguments, "--quiet"], stderr=subprocess.PIPE) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        errors = process.stderr.read()
        process.wait()
        if process.returncode not in (0, -signal.SIGKILL):
            sys.exit(f"it failed by itself: {process.returncode} {errors}")
        return process.returncode != 0


def kill_until_done(arguments, output, expected, duration, generator, kills_left):
    """Returns how often it was killed."""
    kills = 0
    while kills < kills_left and not output.exists():
        # What is there speeds it up, so that it comes further each time.
        kills += kill_after(arguments, generator.random() * duration * 0.7)
    if not output.exists():
        subprocess.run([*arguments, "--quiet"], check=True)
    partial = output.with_name(output.name + ".partial")
    # Killed around the moment when it took its place.
    for name in ("PARTIAL", "JOURNAL"):
        (output / name).unlink(missing_ok=True)
    if partial.exists() or not same(output, expected):
        sys.exit(f"{arguments}: after {kills} kills the archive is another")
    shutil.rmtree(output)
    return kills


def check_terminate(arguments, output, expected, duration):
    """SIGTERM, as soon as there is a segment: says how to go on."""
    partial = output.with_name(output.name + ".partial")
    with subprocess.Popen([*arguments, "--quiet"], stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60 * duration + 60
        while (process.poll() is None and time.monotonic() < end and
               not (partial / "segment-00000000").exists()):
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        errors = process.stderr.read().decode()
        process.wait()
    # It may have been done already.
    if process.returncode == -signal.SIGTERM:
        if "the same command goes on" not in errors or not partial.exists():
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
    """A file that cannot grow fails like one on a full disk."""
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


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
    print(f"seed {seed}")
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="quire-kill-") as scratch:
        directory = Path(scratch)
        archive = directory / "x.quire"
        make_archive(archive, directory, generator)
        output = directory / "out.quire"
        kills = 0
        for codec in CODECS:
            expected = directory / "expected"
            start = time.monotonic()
            subprocess.run([*command(archive, expected, codec), "--quiet"], check=True)
            duration = time.monotonic() - start
            arguments = command(archive, output, codec)
            check_terminate(arguments, output, expected, duration)
            if codec == "xz:9":
                check_full_disk(arguments, output, expected)
            share = KILL_COUNT * (CODECS.index(codec) + 1) // len(CODECS)
            while kills < share:
                kills += kill_until_done(arguments, output, expected, duration,
                                         generator, share - kills)
            shutil.rmtree(expected)
        if sorted(os.listdir(directory)) != ["x.quire"]:
            sys.exit(f"left behind: {os.listdir(directory)}")
        print(f"killed {kills} times; every archive was the same in the end")


if __name__ == "__main__":
    main()
