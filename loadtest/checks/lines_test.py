#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lines as documents, with the programs themselves: logs, JSON Lines and CSV, plain and
compressed, are built, served, listed, read by id and range, exported, planned for and recompressed.

usage: lines_test.py QUIRED QUIRE
"""
import bz2
import gzip
import io
import json
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer

SEED = 20261125
# Only a hang takes this long.
PATIENCE_SECONDS = 300
LOG_LINE_COUNT = 30_000


def log_lines(count, seed):
    """Lines of a web server, some empty, one without an end."""
    draw = random.Random(seed)
    lines = [b"" if draw.random() < 0.01 else
             b"10.0.%d.%d GET /item/%d?session=%016x %d" %
             (draw.randrange(256), draw.randrange(256), draw.randrange(10 ** 6),
              draw.getrandbits(64), draw.choice((200, 200, 304, 404))) for _ in range(count)]
    return [line + (b"\r\n" if draw.random() < 0.1 else b"\n") for line in lines[:-1]] + [b"the last"]


class LinesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        logs = cls.directory / "logs"
        logs.mkdir()
        cls.files = {"web.log": log_lines(LOG_LINE_COUNT, 1), "web.log.1": log_lines(500, 2),
                     "web.log.2.gz": log_lines(700, 3), "web.log.3.bz2": log_lines(90, 4)}
        for name, lines in cls.files.items():
            text = b"".join(lines)
            (logs / name).write_bytes(gzip.compress(text) if name.endswith("gz") else
                                      bz2.compress(text) if name.endswith("bz2") else text)
        cls.space = b"".join(b"".join(cls.files[name]) for name in sorted(cls.files))
        (cls.directory / "facts.jsonl").write_text("".join(
            json.dumps({"key": f"fact/{n}", "text": f"text of {n}\n"}) + "\n"
            for n in range(1000)), encoding="utf-8")
        cls.build("logs", "logs")
        cls.build("facts", "facts.jsonl", "--id-field", "key", "--text-field", "text")
        cls.quired("recompress", cls.path("logs"), "-o", cls.path("again"), "--codec", "lz4")
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [cls.path(name) for name in ("logs", "facts", "again")]))

    @classmethod
    def path(cls, name):
        return cls.directory / f"{name}.quire"

    @classmethod
    def quired(cls, *arguments, code=0, stdin=None):
        """(standard output, standard error)"""
        run = subprocess.run([QUIRED, *arguments], cwd=cls.directory, input=stdin,
                             capture_output=True, check=False, timeout=PATIENCE_SECONDS)
        assert run.returncode == code, (run.returncode, run.stderr)
        return run.stdout, run.stderr.decode()

    @classmethod
    def build(cls, name, *arguments, code=0, stdin=None):
        """What it says."""
        return cls.quired("build", "-q", "--force", "-o", cls.path(name), "--codec", "zstd",
                          "--split", "lines", *arguments, code=code, stdin=stdin)[1]

    @classmethod
    def inspect(cls, name):
        return json.loads(cls.quired("inspect", "--json", cls.path(name))[0])

    def quire(self, *arguments, code=0, stdin=None):
        run = subprocess.run([QUIRE, "--server", self.server.address, "-q", *arguments], input=stdin,
                             capture_output=True, check=False, timeout=PATIENCE_SECONDS)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout

    def test_each_line_is_read_by_file_and_number(self):
        draw = random.Random(SEED)
        for name, lines in self.files.items():
            for number in {0, len(lines) - 1, *draw.sample(range(len(lines)), 8)}:
                self.assertEqual(self.quire("get", "logs", f"{name}:{number + 1}"), lines[number])
            for number in (0, len(lines) + 1, "01", "", "1x"):
                self.quire("get", "logs", f"{name}:{number}", code=1)

    def test_ids_are_listed_in_order(self):
        ids = sorted(f"{name}:{number + 1}".encode() for name, lines in self.files.items()
                     for number in range(len(lines)))
        for archive in ("logs", "again"):
            self.assertEqual(self.quire("ls", archive).split(b"\n")[:-1], ids)
        for prefix in (b"web.log:1", b"web.log.1:", b"web.log.", b"web.log:2999"):
            self.assertEqual(self.quire("ls", "logs", prefix).split(b"\n")[:-1],
                             [name for name in ids if name.startswith(prefix)], prefix)
        self.quire("ls", "logs", "web.log:7777x", code=1)

    def test_the_lines_together_are_the_files(self):
        for archive in ("logs", "again"):
            self.assertEqual(self.quire("range", archive, "0", str(len(self.space))), self.space)
        self.assertEqual(self.quire("scan", "logs"), self.space)
        exported = self.directory / "out.tar"
        self.quire("export", "logs", "--tar", exported)
        with tarfile.open(exported) as tar:
            members = {member.name: tar.extractfile(member).read() for member in tar}
        self.assertEqual(members, {f"{name}:{number + 1}": line for name, lines in self.files.items()
                                   for number, line in enumerate(lines)})

    def test_a_batch_reads_lines(self):
        draw = random.Random(SEED)
        numbers = draw.sample(range(LOG_LINE_COUNT), 200)
        wanted = "".join(f"web.log:{number + 1}\n" for number in numbers).encode()
        self.assertEqual(self.quire("batch", "logs", stdin=wanted),
                         b"".join(self.files["web.log"][number] for number in numbers))

    def test_fields_are_ids_and_texts(self):
        self.assertEqual(self.quire("get", "facts", "fact/17"), b"text of 17\n")
        self.assertEqual(self.quire("ls", "facts", "fact/99"),
                         b"".join(b"fact/%d\n" % n for n in (99, *range(990, 1000))))

    def test_other_commands_take_such_archives(self):
        for name in ("logs", "facts", "again"):
            self.quired("verify", self.path(name))
        count = sum(len(lines) for lines in self.files.values())
        self.assertEqual(self.inspect("logs")["document_count"], count)
        self.assertEqual(self.inspect("again")["document_count"], count)
        plan = self.directory / "plan.json"
        self.quired("plan", "--split", "lines", "--json", plan, "logs")
        self.assertIn("cells", plan.read_text())

    def test_a_line_takes_few_bits_in_memory(self):
        for name in ("logs", "again"):
            inspected = self.inspect(name)
            memory = inspected["memory"]
            taken = 8 * (memory["document_ids_bytes"] + memory["document_starts_bytes"])
            self.assertLess(taken / inspected["document_count"], 24)
        # Too few lines for a run, and lines that others lie between: these are stored.
        for number in (1, 2):
            (self.directory / str(number)).mkdir()
            (self.directory / str(number) / "same.log").write_bytes(b"text\n" * 200)
        (self.directory / "short.log").write_bytes(b"text\n" * 63)
        self.build("stored", "1", "2", "short.log")
        self.quired("verify", self.path("stored"))
        self.assertGreater(self.inspect("stored")["memory"]["document_ids_bytes"], 463)

    def test_names_bad_and_repeated_records(self):
        (self.directory / "bad.jsonl").write_bytes(
            b'{"id":1}\n{"id":2}\n{"id":1}\n{"no":1}\n{"id":\n')
        said = self.build("bad", "bad.jsonl", "--id-field", "id")
        for part in ("2 records lack a field or are malformed", "1 record repeats an id",
                     'bad.jsonl: the file, line 4: has no field "id"',
                     "bad.jsonl: the file, line 5: is not JSON",
                     'bad.jsonl: the file, line 3: has the id "1" of an earlier record'):
            self.assertIn(part, said)
        (self.directory / "many.jsonl").write_bytes(b'{"id":0}\n' + b"{}\n" * 5000)
        said = self.build("bad", "many.jsonl", "--id-field", "id")
        self.assertIn("5,000 records lack a field", said)
        self.assertIn("and 4,980 more", said)
        self.assertIn('has no column "id"', self.build("bad", "logs", "--id-field", "id", code=1))
        self.assertIn("--split", self.build_without_split("--id-field", "id"))

    def build_without_split(self, *arguments):
        return self.quired("build", "-o", self.path("bad2"), "logs", *arguments, code=2)[1]

    def test_standard_input_is_split_too(self):
        self.build("stdin", "-", stdin=gzip.compress(b"one\ntwo\n"))
        self.assertEqual(self.inspect("stdin")["document_count"], 2)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name in ("a", "b"):
                info = tarfile.TarInfo(name)
                info.size = 6
                tar.addfile(info, io.BytesIO(b"x\ny\nz\n"))
        self.build("stdin", "-", stdin=packed.getvalue())
        self.assertEqual(self.inspect("stdin")["document_count"], 6)


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
