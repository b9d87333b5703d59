#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests quired build, verify and inspect from the command line: exit codes, streams, and
user errors."""
import io
import json
import os
import pty
import signal
import subprocess
import tarfile
import threading
import time
import unittest
from pathlib import Path

from offline_case import OfflineCase, QUIRED, make_tar, text_of_size


def catches(pid, number):
    """True if a process has a handler of a signal."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16) >> (number - 1) & 1 == 1
    return False


def characters_read(pid):
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


class OfflineCommandsTest(OfflineCase):
    def test_build_inspect_verify(self):
        result = self.build("-o", "x.quire", "in")
        self.assertIn(b"50 documents", result.stderr)
        info = self.inspect("x.quire")
        self.assertEqual(info["document_count"], 50)
        self.assertEqual(info["size_bytes"], sum(map(len, self.files.values())))
        self.assertEqual(info["block_size_bytes"], 65536)
        self.assertEqual(info["codec"], "rlz:2")
        self.assertEqual(
            info["stored_size_bytes"],
            sum(p.stat().st_size for p in (self.directory / "x.quire").iterdir()))
        self.assertEqual(
            info["memory"]["total_bytes"],
            sum(v for k, v in info["memory"].items() if k != "total_bytes"))
        text = self.run_quired("inspect", "x.quire")
        self.assertEqual(text.returncode, 0)
        self.assertIn(b"bits per document", text.stdout)
        verified = self.run_quired("verify", "x.quire")
        self.assertEqual(verified.returncode, 0)
        self.assertIn(b"whole", verified.stdout)
        self.assertEqual(verified.stderr, b"")
        part = self.run_quired("verify", "--part", "2/2", "x.quire")
        self.assertEqual(part.returncode, 0)
        self.assertIn(b"x.quire, part 2/2: whole: 1 good block", part.stdout)

    def test_opens_more_files_than_the_soft_limit(self):
        """An archive of many segments has as many files."""
        self.build("-o", "x.quire", "in")
        for command in ("inspect", "verify"):
            result = subprocess.run(
                ["prlimit", "--nofile=5:1024", QUIRED, command, "x.quire"],
                cwd=self.directory, capture_output=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_counts_one_as_one(self):
        self.assertIn(b"x.quire: 1 document, 2.93 KiB in 1 block of ",
                      self.build("-o", "x.quire", "in/d/000.txt").stderr)
        self.assertIn(b"x.quire: whole: 1 good block, ",
                      self.run_quired("verify", "x.quire").stdout)
        self.assertIn(b"  1 document repeats an earlier id; ",
                      self.build("-o", "y.quire", "in/d/000.txt", "in/d/000.txt").stderr)

    def test_quiet_is_silent(self):
        result = self.build("--quiet", "-o", "x.quire", "in")
        self.assertEqual(result.stderr, b"")
        result = self.run_quired("verify", "--quiet", "x.quire")
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, b"", b""))

    def test_warns_of_what_is_left_out_even_when_quiet(self):
        (self.directory / "in" / "link").symlink_to("d")
        result = self.build("--quiet", "-o", "x.quire", "in")
        self.assertEqual(result.stderr,
                         b"warning: left out: 1 symbolic link; --verbose names them\n")

    def test_warns_of_an_archive_of_nothing(self):
        (self.directory / "empty").mkdir()
        self.assertEqual(self.build("--quiet", "-o", "x.quire", "empty").stderr,
                         b"warning: the inputs hold no documents\n")

    def test_options_and_several_inputs(self):
        (self.directory / "x.tar").write_bytes(make_tar({"t": b"in a tar"}))
        (self.directory / "[a,b]").write_bytes(b"an odd name")
        self.build("-o", "x.quire", "--codec", "zstd:5", "--block-size=4KiB",
                   "--threads", "3", "--segment-size", "50KiB", "in", "x.tar",
                   "[a,b]", "-", stdin=make_tar({"s": b"on standard input"}))
        info = self.inspect("x.quire")
        self.assertEqual(info["document_count"], 53)
        self.assertEqual(info["block_size_bytes"], 4096)
        self.assertEqual(info["codec"], "zstd:5")
        self.assertGreater(info["segment_count"], 2)
        self.assertNotIn("dictionary_hash", info)

    def test_standard_input(self):
        self.build("-o", "x.quire", "-", stdin=make_tar(self.files))
        self.assertEqual(self.inspect("x.quire")["document_count"], 50)
        self.assertEqual(self.names(), ["in", "x.quire"])

    def test_force_replaces(self):
        self.build("-o", "x.quire/", "in")
        first = self.inspect("x.quire")["uuid"]
        self.build("-o", "x.quire", "--force", "in/d/000.txt")
        self.assertNotEqual(self.inspect("x.quire")["uuid"], first)
        self.assertEqual(self.names(), ["in", "x.quire"])

    def test_repeated_ids_are_counted(self):
        result = self.build("-o", "x.quire", "in", "in")
        self.assertIn(b"50 documents repeat an earlier id", result.stderr)

    def test_attributes_over_the_limits_are_left_out_with_a_warning(self):
        """Nothing of a hostile record reaches the terminal unescaped."""
        def warc(*headers):
            block = b"block"
            return (b"\r\n".join([b"WARC/1.0", *headers,
                                  b"Content-Length: %d" % len(block)])
                    + b"\r\n\r\n" + block + b"\r\n\r\n")

        hostile = b"\x1b[31m\xc2\x9b\xff"
        first = warc(b"WARC-Target-URI: u", b"Content-Type: " + b"t" * 65536)
        path = self.directory / "in.warc"
        path.write_bytes(first)
        self.assertEqual(
            self.build("--quiet", "-o", "x.quire", "in.warc").stderr,
            b"warning: 1 attribute was over the limits of an archive and left out; the first: "
            b"in.warc: record 0 (from 0) at byte 0 of the uncompressed WARC: a media type of "
            b"65,536 bytes\n")
        path.write_bytes(first + warc(b"WARC-Target-URI: " + hostile + b"u" * 65536))
        result = self.run_quired("build", "-o", "y.quire", "in.warc")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"quired: in.warc: record 1 (from 0) at byte %d of the uncompressed WARC: "
                      b'its id, "\\x1B[31m\\xC2\\x9B\\xFFuu' % len(first), result.stderr)
        self.assertIn(b"an id must be at most 65,535 bytes", result.stderr)
        for control in [b"\x1b", b"\xc2\x9b", b"\xff"]:
            self.assertNotIn(control, result.stderr)
        self.assertNotIn("y.quire", self.names())

    def test_no_control_characters_are_printed(self):
        name = b"\x1b[31m\xc2\x9b\x7f\n\xff"
        os.makedirs(os.path.join(os.fsencode(self.directory), b"in-" + name))
        with open(os.path.join(os.fsencode(self.directory), b"in-" + name, b"f" + name), "wb") as f:
            f.write(text_of_size(5000, 1))
        output = b"x-" + name
        outputs = []
        for arguments in [["build", "-o", output, "--codec", "copy", b"in-" + name],
                          ["inspect", output], ["inspect", "--json", output],
                          ["verify", output], ["verify", "--json", output],
                          ["build", "-o", output, b"in-" + name],
                          ["inspect", b"no-" + name], [name],
                          ["verify", "--threads", name, output]]:
            outputs.append(subprocess.run(
                [QUIRED, *arguments], cwd=self.directory, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        segment, = Path(os.fsdecode(self.directory / os.fsdecode(output))).glob("segment-*")
        contents = bytearray(segment.read_bytes())
        contents[contents.index(text_of_size(100, 1)) + 50] ^= 1
        segment.write_bytes(contents)
        for arguments in [["verify", output], ["verify", "--json", output]]:
            result = subprocess.run([QUIRED, *arguments], cwd=self.directory, check=False,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn(b"f\\x1B[31m\\xC2\\x9B\\x7F\\x0A\\xFF" if len(arguments) == 2
                          else b"f\\u001b[31m\\u009b\\u007f\\n\xef\xbf\xbd", result.stdout)
            outputs.append(result)
        self.assertEqual([o.returncode for o in outputs],
                         [0, 0, 0, 0, 0, 1, 1, 2, 2, 1, 1])
        for result in outputs:
            with self.subTest(result.args):
                printed = (result.stdout + result.stderr).decode()
                self.assertTrue(printed)
                for character in printed:
                    self.assertTrue(character == "\n" or ord(character) >= 0xA0
                                    or 0x20 <= ord(character) < 0x7F, printed)

    def test_a_small_sparse_tar_that_claims_much_stops_at_once(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            info = tarfile.TarInfo("x")
            info.size = 512
            info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                                "GNU.sparse.name": "huge", "GNU.sparse.realsize": str(1 << 40)}
            tar.addfile(info, io.BytesIO(b"1\n%d\n0\n".ljust(512, b"\0") % (1 << 40)))
        self.assertLessEqual(len(out.getvalue()), 10240)
        (self.directory / "x.tar").write_bytes(out.getvalue())
        result = self.run_quired("build", "-o", "x.quire", "x.tar")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, rb'quired: x\.tar: entry 0 \(from 0\), "huge", .*1 TiB.*'
                         rb"the limit of 64 GiB.*--input-size-max\n")
        self.assertNotIn("x.quire", self.names())

    def test_hard_links_of_a_compressed_tar(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for name, contents in self.files.items():
                info = tarfile.TarInfo(name)
                info.size = len(contents)
                tar.addfile(info, io.BytesIO(contents))
            for i, name in enumerate(reversed(self.files)):
                info = tarfile.TarInfo(f"link{i}")
                info.type = tarfile.LNKTYPE
                info.linkname = name
                tar.addfile(info)
        self.build("-o", "x.quire", "-", stdin=out.getvalue())
        info = self.inspect("x.quire")
        self.assertEqual(info["document_count"], 100)
        self.assertEqual(info["size_bytes"], 2 * sum(map(len, self.files.values())))
        self.assertEqual(self.names(), ["in", "x.quire"])

    def test_progress_on_a_terminal_only(self):
        main, side = pty.openpty()
        with subprocess.Popen([QUIRED, "build", "-o", "x.quire", "in"],
                              cwd=self.directory, stderr=side) as process:
            os.close(side)
            shown = b""
            while True:
                try:
                    shown += os.read(main, 4096)
                except OSError:  # the other side is closed
                    break
            os.close(main)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"\rencoding", shown)
        self.assertIn(b"50 documents", shown)

    def test_damage_is_named_with_its_documents(self):
        self.build("-o", "x.quire", "--codec", "copy", "--block-size", "4KiB",
                   "in")
        segment, = (self.directory / "x.quire").glob("segment-*")
        contents = bytearray(segment.read_bytes())
        at = contents.index(self.files["d/007.txt"][:100])
        contents[at + 50] ^= 1
        segment.write_bytes(contents)
        result = self.run_quired("verify", "x.quire")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"d/007.txt", result.stdout)
        self.assertIn(b"DAMAGED", result.stdout)
        self.assertRegex(result.stdout, rb"; 1 damaged block; damage found in 1 place \(")
        report = self.run_quired("verify", "--json", "x.quire")
        self.assertEqual(report.returncode, 1)
        self.assertEqual(report.stdout.count(b"\n"), 1)
        report = json.loads(report.stdout)
        self.assertFalse(report["whole"])
        self.assertEqual(report["damaged_block_count"], 1)
        ids = [document["id"] for damage in report["damages"]
               for document in damage["documents"]]
        self.assertIn("d/007.txt", ids)
        self.assertLess(len(ids), 5)

    def test_says_how_many_documents_a_lost_file_takes_with_it(self):
        for part in ["segment-*", "dictionary-*"]:
            with self.subTest(part):
                self.build("--force", "-o", "x.quire", "in")
                path, = (self.directory / "x.quire").glob(part)
                path.unlink()
                result = self.run_quired("verify", "x.quire")
                self.assertEqual(result.returncode, 1)
                self.assertIn(b", of 50 documents\n", result.stdout)
                self.assertNotIn(b"more\n", result.stdout)

    def test_mistakes(self):
        self.build("-o", "x.quire", "in")
        manifest = (self.directory / "x.quire/MANIFEST").read_bytes()
        for name, version in ("v0", b"\0"), ("v3", b"\3"), ("v99", b"\x63"):
            (self.directory / name).mkdir()
            (self.directory / name / "MANIFEST").write_bytes(manifest[:8] + version + manifest[9:])
        (self.directory / "empty").mkdir()
        (self.directory / "cut.warc").write_bytes(b"WARC/1.0\r\nContent-Le")
        os.mkfifo(self.directory / "pipe")
        before = self.names()
        good = ["build", "-o", "y.quire"]
        recompress = ["recompress", "x.quire", "--codec", "lz4", "-o"]
        cases = [
            # Exit code, part of the message, arguments.
            (2, "Usage: quired", []),
            (2, 'must be one of build, append, compact, dictionary, join, plan, recompress, redact, verify, repair, salvage, inspect, serve, check-config, token, got "biuld"', ["biuld", "in"]),
            (2, 'ID must have no blanks, got "a calls=5"', ["token", "new", "a calls=5"]),
            (2, "ID must not be empty", ["token", "new", ""]),
            (2, "quired: rights must be list", ["token", "new", "a", "--rights", "write"]),
            (2, "--output", ["build", "in"]),
            (2, "INPUT", good),
            (2, 'unknown option "--blok-size"', ["build", "--blok-size", "4KiB", "in"]),
            (2, 'unknown option "--blok-size"', [*good, "--blok-size", "4KiB", "in"]),
            (2, '--block-size: a size must be a number of bytes, or one with a unit, like 64KiB, 16MiB '
                'or 1.5GiB, got "big"', [*good, "--block-size", "big", "in"]),
            (2, "--block-size must be a power of two from 4KiB to 1MiB, like 16KiB or 64KiB, "
                "got 5000B", [*good, "--block-size", "5000", "in"]),
            (2, "power of two", [*good, "--block-size", "2MiB", "in"]),
            (2, "nope", [*good, "--codec", "nope", "in"]),
            (2, "zstd", [*good, "--codec", "nope", "in"]),
            (2, "99", [*good, "--codec", "zstd:99", "in"]),
            (2, "--dictionary-size needs a codec with a dictionary, and codec zstd has none",
             [*good, "--codec", "zstd", "--dictionary-size", "1MiB", "in"]),
            (2, "--partition-size does not apply to codec fsst; leave the option out",
             [*good, "--codec", "fsst", "--partition-size", "8KiB", "in"]),
            (2, "--partition-size must be a power of two from 4KiB to 1MiB, and at most",
             [*good, "--codec", "zlib", "--partition-size", "5KiB", "in"]),
            (2, "--block-size, which is 16KiB; got 32KiB",
             [*good, "--codec", "zlib", "--block-size", "16KiB", "--partition-size",
              "32KiB", "in"]),
            (2, "--dictionary-method needs a codec with a dictionary",
             [*good, "--codec", "zstd", "--dictionary-method", "uniform", "in"]),
            (2, 'must be coverage or uniform, got "random"',
             [*good, "--dictionary-method", "random", "in"]),
            (2, "--build-memory must be at least 1 byte, got 0",
             [*good, "--build-memory", "0", "in"]),
            (2, '--reorder must be off, auto, dedup or full, got "on"',
             [*good, "--reorder", "on", "in"]),
            (2, '--inflate must be off or auto, got "on"',
             [*good, "--inflate", "on", "in"]),
            (2, "--inflate-member-size must be 1 byte to 6MiB",
             [*good, "--inflate-member-size", "7MiB", "in"]),
            (2, '--objective must be speed, balanced or archive, got "small"',
             [*good, "--codec", "auto", "--objective", "small", "in"]),
            (2, "2GiB", [*good, "--dictionary-size", "2GiB", "in"]),
            (2, '--threads: must be 1 to 1024, got "0"', [*good, "--threads", "0", "in"]),
            (2, '--threads: must be 1 to 1024, got "-1"', [*good, "--threads", "-1", "in"]),
            (2, "--input-size-max must be at least 1 byte, got 0",
             [*good, "--input-size-max", "0", "in"]),
            (1, "999 B, which guards against inputs that expand",
             [*good, "--input-size-max", "999", "in"]),
            (2, "only once", [*good, "-", "-"]),
            (2, "--output must be outside all inputs", ["build", "-o", "in/y.quire", "in"]),
            (2, "inside the input", ["build", "-o", "y.quire", "."]),
            (1, "--force", ["build", "-o", "x.quire", "in"]),
            (1, "in", ["build", "--force", "-o", "in", "x.quire"]),
            (1, "no such directory", ["build", "-o", "no/y.quire", "in"]),
            (1, "missing", [*good, "missing"]),
            (1, "standard input must be a tar, zip or WARC and is empty", [*good, "-"]),
            (1, "pipe", [*good, "pipe"]),
            (1, "cut.warc", [*good, "cut.warc"]),
            (2, "ARCHIVE", ["recompress", "-o", "y.quire", "--codec", "lz4"]),
            (2, "--output", ["recompress", "x.quire", "--codec", "lz4"]),
            (2, "--codec", ["recompress", "x.quire", "-o", "y.quire"]),
            (2, "nope", ["recompress", "x.quire", "-o", "y.quire", "--codec", "nope"]),
            (2, "--dictionary-size needs a codec with a dictionary",
             [*recompress, "y.quire", "--dictionary-size", "1MiB"]),
            (2, "--output is the archive itself, x.quire; give --replace",
             [*recompress, "x.quire"]),
            (2, "--output must be outside the archive", [*recompress, "x.quire/y.quire"]),
            (1, "is no archive", ["recompress", "empty", "-o", "y.quire", "--codec", "lz4"]),
            (1, "missing", ["recompress", "missing", "-o", "y.quire", "--codec", "lz4"]),
            (1, "empty: is there already, and is no archive", [*recompress, "empty"]),
            (1, "is no archive; move it away", [*recompress, "empty", "--replace"]),
            (1, "no such directory", [*recompress, "no/y.quire"]),
            (2, "ARCHIVE", ["verify"]),
            (2, '--threads: must be 1 to 1024, got "x"', ["verify", "--threads", "x", "x.quire"]),
            (2, '--part must be N/T with 1 <= N <= T <= 1000000, like 3/14, got "0/3"',
             ["verify", "--part", "0/3", "x.quire"]),
            (2, 'got "4/3"', ["verify", "--part", "4/3", "x.quire"]),
            (2, 'got "3"', ["verify", "--part", "3", "x.quire"]),
            (3, "missing", ["verify", "missing"]),
            (3, "version 3, which a pre-release wrote: build the archive again", ["verify", "v3"]),
            (3, "use a newer program", ["verify", "v99"]),
            (3, "empty: is no archive", ["verify", "empty"]),
            (1, "missing", ["inspect", "missing"]),
            (1, "cut.warc", ["inspect", "cut.warc"]),
            (2, "second", ["inspect", "x.quire", "second"]),
        ]
        # Damage is printed to standard output.
        damage = self.run_quired("verify", "v0")
        self.assertEqual(damage.returncode, 1)
        self.assertIn(b"claims format version 0, expected 4; the file is damaged", damage.stdout)
        self.assertIn(b"quired salvage saves documents without it", damage.stdout)
        self.assertEqual(damage.stderr, b"")
        for exit_code, message, arguments in cases:
            with self.subTest(arguments):
                result = self.run_quired(*arguments)
                self.assertEqual(result.returncode, exit_code, result.stderr)
                self.assertIn(message, result.stderr.decode())
                self.assertEqual(result.stdout, b"")
                self.assertEqual(self.names(), before)

    def test_says_what_could_not_be_printed(self):
        self.build("-o", "x.quire", "in")
        for arguments in [["inspect", "x.quire"], ["verify", "x.quire"], ["--help"]]:
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                result = subprocess.run([QUIRED, *arguments], cwd=self.directory, stdout=full,
                                        stderr=subprocess.PIPE, check=False)
                self.assertEqual(result.returncode, 1)
                self.assertIn(b"quired: cannot write to standard output: No space left",
                              result.stderr)

    def test_closed_streams_stay_closed(self):
        """gRPC does not reuse their descriptors when it is loaded."""
        self.build("-o", "x.quire", "in")
        before = self.names()
        for arguments, fd, message in [
                (["build", "-o", "y.quire", "-"], 0, b"and is closed; pipe one in: tar -c"),
                (["inspect", "x.quire"], 1, b"cannot write to standard output: Bad file desc")]:
            with self.subTest(arguments):
                result = subprocess.run([QUIRED, *arguments], cwd=self.directory, check=False,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=lambda closed=fd: os.close(closed))
                self.assertEqual(result.returncode, 1)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stdout, b"")
                self.assertEqual(self.names(), before)

    def test_help(self):
        for arguments in [["--help"], ["build", "--help"], ["recompress", "--help"], ["verify", "-h"],
                          ["repair", "--help"], ["salvage", "--help"], ["inspect", "--help"]]:
            result = self.run_quired(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn(b"Usage: quired", result.stdout)
            self.assertEqual(result.stderr, b"")

    def test_archives_called_partial_are_left_alone(self):
        self.build("-o", "x.quire.partial", "in")
        before = self.inspect("x.quire.partial")
        result = self.run_quired("build", "-o", "x.quire", "in")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"x.quire.partial: holds", result.stderr)
        self.assertEqual(self.inspect("x.quire.partial"), before)
        self.assertFalse((self.directory / "x.quire").exists())

    def test_archives_that_are_being_replaced_are_not_damaged(self):
        options = ["--quiet", "--force", "-o", "x.quire", "--codec", "lz4", "--segment-size",
                   "20KiB"]
        self.build(*options, "in")
        done = threading.Event()

        def replace():
            for i in range(15):
                self.run_quired("build", *options, "in" if i % 2 == 0 else "in/d/001.txt")
            done.set()

        replacer = threading.Thread(target=replace)
        replacer.start()
        while not done.is_set():
            for subcommand in ("verify", "inspect"):
                result = self.run_quired(subcommand, "x.quire")
                self.assertEqual(result.returncode, 0, result)
        replacer.join()

    def test_interrupts_leave_nothing(self):
        # Far too much to encode before the signal comes.
        with open(self.directory / "big", "wb") as big:
            for seed in range(16):
                big.write(text_of_size(1 << 20, seed) * 8)
        before = self.names()
        # While the text is analysed, and while it is written, which without analysis begins
        # at once.
        for number, options in [(signal.SIGINT, []),
                                (signal.SIGTERM, ["--reorder", "off", "--inflate", "off"])]:
            with subprocess.Popen(
                    [QUIRED, "build", "-o", "x.quire", "--codec", "zstd:19", *options,
                     "big"], cwd=self.directory, stderr=subprocess.PIPE) as process:
                while not catches(process.pid, number) or not (
                        (self.directory / "x.quire.partial").exists() if options
                        else characters_read(process.pid) > 1 << 20):
                    self.assertIsNone(process.poll())
                    time.sleep(0.001)
                process.send_signal(number)
                _, message = process.communicate()
            self.assertEqual(process.returncode, -number)
            self.assertIn(b"interrupted", message)
            self.assertEqual(self.names(), before)


if __name__ == "__main__":
    unittest.main()
