#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests quired build over directories as crawlers and packagers leave them: containers in
them, damaged files, misleading names, and omitted or renamed entries. Also tests the
help of both subcommands that encode.

QUIRE_BINARY_DIR names the build directory.
"""
import gzip
import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile
from pathlib import Path

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"


def warc_record(uri, text):
    block = text.encode()
    head = (f"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: {uri}\r\n"
            f"Content-Length: {len(block)}\r\n\r\n")
    return head.encode() + block + b"\r\n\r\n"


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, contents in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            tar.addfile(info, io.BytesIO(contents))
    return out.getvalue()


def arc_of(urls):
    head = b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n"
    out = b"filedesc://x.arc 0.0.0.0 20050622190800 text/plain %d\n%s\n" % (len(head), head)
    for url in urls:
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + url
        out += b"%s 1.2.3.4 20050622190850 text/html %d\n%s\n" % (url, len(block), block)
    return out


def wacz_of(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
        archive.writestr("datapackage.json", "{}")
    return out.getvalue()


class BuildInputsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-inputs-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        self.crawl = self.directory / "crawl"

    def write(self, name, contents):
        path = self.crawl / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
        return path

    def run_quired(self, *arguments, stdin=b""):
        return subprocess.run([QUIRED, *map(str, arguments)], input=stdin, cwd=self.directory,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def build(self, *arguments, code=0, stdin=b""):
        """Returns the messages."""
        result = self.run_quired("build", "--force", "-o", "x.quire", "--codec", "zstd", *arguments,
                                 stdin=stdin)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, b"")
        return result.stderr.decode()

    def inspect(self):
        result = self.run_quired("inspect", "--json", "x.quire")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def document_count(self):
        return self.inspect()["document_count"]

    def test_hints_at_containers_once_and_expands_them(self):
        for i in range(3):
            self.write(f"{i}.warc.gz", gzip.compress(warc_record("http://u/1", "one")) +
                       gzip.compress(warc_record("http://u/2", "two")))
        self.write("notes.txt", b"notes")
        said = self.build("crawl")
        self.assertEqual(said.count("--expand"), 1, said)
        self.assertIn("3 files of the directories are tars, zips, WARCs, ARCs or WACZs", said)
        self.assertEqual(self.document_count(), 4)
        self.assertEqual(self.build("-q", "crawl"), "")

        said = self.build("--expand", "crawl")
        self.assertNotIn("hint", said)
        self.assertNotIn("earlier id", said)
        self.assertEqual(self.document_count(), 7)
        # Only the URIs occur in each of the three.
        said = self.build("--expand", "--expand-ids", "member", "crawl")
        self.assertIn("4 documents repeat an earlier id", said)
        self.assertEqual(self.document_count(), 7)
        refused = self.run_quired("build", "-o", "x.quire", "--expand-ids", "member", "crawl")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(b"--expand-ids requires --expand", refused.stderr)

    def test_keeps_going_and_says_so(self):
        whole = gzip.compress(warc_record("http://u/1", "one")) * 20
        self.write("cut.warc.gz", whole[:-7])
        self.write("long.tar", tar_of({"a": b"1", "n" * 70000: b"2", "c": b"3"}))
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            for name in ("m1", "m2", "m3"):
                archive.writestr(name, name * 1000)
        damaged = zipped.getvalue().replace(b"m2m2m2", b"m2m2mX", 1)
        self.write("damaged.zip", damaged)
        self.write("good", b"good")
        refused = self.run_quired("build", "-o", "x.quire", "--expand", "crawl")
        self.assertEqual(refused.returncode, 1)
        self.assertFalse((self.directory / "x.quire").exists())

        arguments = ("--expand", "--keep-going", "crawl", "missing")
        said = self.build(*arguments, code=1)
        self.assertIn("warning: 4 inputs, files, members or records could not be read", said)
        for part in ("cut.warc.gz", "long.tar", '"m2"', "missing"):
            self.assertIn(part, said)
        # 19 records, a and c, m1 and m3, good.
        self.assertEqual(self.document_count(), 24)
        self.assertEqual(self.inspect()["unread_input_count"], 4)
        shown = self.run_quired("inspect", "x.quire").stdout.decode()
        self.assertIn("4 inputs, files or records that could not be read", shown)
        for part in ("missing: ", "crawl/cut.warc.gz: ", "crawl/damaged.zip: "):
            self.assertEqual(shown.count(part), 1, shown)
        self.assertEqual(len(self.inspect()["unread_inputs"]), 4)
        self.assertEqual(self.run_quired("verify", "x.quire").returncode, 0)

        said = self.build("-v", *arguments, code=1)
        self.assertEqual(said.count("left out, cannot be read: "), 4, said)
        said = self.build("-q", *arguments, code=1)
        self.assertIn("warning: 4 inputs, files, members or records", said)
        said = self.build("--keep-going", "missing", "crawl/good", code=1)
        self.assertEqual(self.inspect()["unread_input_count"], 1)
        self.build("--keep-going", "crawl/good")
        self.assertEqual(self.inspect()["unread_input_count"], 0)

    def test_reads_crawls_of_other_formats(self):
        self.write("x.wacz", wacz_of({
            "archive/b.warc.gz": gzip.compress(warc_record("http://u/2", "two")),
            "archive/a.warc": warc_record("http://u/1", "one"),
            "indexes/index.cdx": b"not read"}))
        self.write("y.arc.gz", gzip.compress(arc_of([b"http://u/3", b"http://u/4"])))
        inputs = ("crawl/x.wacz", "crawl/y.arc.gz")
        self.assertNotIn("warning", self.build(*inputs))
        self.assertEqual(self.document_count(), 5)
        segment = (self.directory / "x.quire" / "segment-00000000").read_bytes()
        self.assertIn(b"filedesc://x.arc", segment)
        self.assertEqual(self.run_quired("verify", "x.quire").returncode, 0)
        self.assertEqual(self.run_quired("plan", *inputs).returncode, 0)
        self.build("-", stdin=(self.crawl / "x.wacz").read_bytes())
        self.assertEqual(self.document_count(), 2)
        self.build("--expand", "crawl")
        self.assertEqual(self.document_count(), 5)
        said = self.build("crawl")
        self.assertIn("2 files of the directories are tars, zips, WARCs, ARCs or WACZs", said)

    def test_reads_a_compressed_zip_with_a_large_entry(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("large", os.urandom(2 << 20))
            archive.writestr("small", "text")
        self.write("x.zip.gz", gzip.compress(out.getvalue(), 1))
        self.build("crawl/x.zip.gz")
        self.assertEqual(self.document_count(), 2)

    def test_names_what_is_wrong_with_a_wacz(self):
        self.write("none.wacz", wacz_of({"archive/readme": b"no WARC"}))
        self.write("good", b"good")
        for command in (("build", "-o", "y.quire"), ("plan",)):
            result = self.run_quired(*command, "crawl/none.wacz")
            self.assertEqual(result.returncode, 1)
            self.assertIn(b"crawl/none.wacz: a WACZ must hold archive/*.warc or "
                          b"archive/*.warc.gz, and none of its 2 entries is one", result.stderr)
            self.assertFalse((self.directory / "y.quire").exists())
        said = self.build("--keep-going", "crawl/none.wacz", "crawl/good", code=1)
        self.assertIn("warning: 1 input, file, member or record could not be read", said)
        self.assertEqual(self.inspect()["unread_input_count"], 1)
        whole = wacz_of({"archive/a.warc": warc_record("http://u/1", "one" * 1000)})
        for size in (100, len(whole) - 30):
            self.write("cut.wacz", whole[:size])
            result = self.run_quired("build", "-o", "y.quire", "crawl/cut.wacz")
            self.assertEqual(result.returncode, 1)
            self.assertIn(b"crawl/cut.wacz: ", result.stderr)
            self.assertFalse((self.directory / "y.quire").exists())

    def test_says_which_attributes_are_dropped(self):
        self.write("a", b"1")
        os.symlink("a", self.crawl / "link")
        said = self.build("crawl")
        self.assertIn("  not kept of files: 1 mode, 1 owner, 1 symbolic link\n", said)
        self.write("x.tar", tar_of({"b": b"2", "c": b"3"}))
        self.assertIn("  not kept of files: 2 modes, 2 owners\n", self.build("crawl/x.tar"))
        # The zip says a mode, and no owner.
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("d", b"4")
        self.write("x.zip", zipped.getvalue())
        self.assertIn("  not kept of files: 1 mode\n", self.build("crawl/x.zip"))
        self.write("x.warc", warc_record("http://u/1", "one"))
        self.assertNotIn("not kept", self.build("crawl/x.warc"))

    def test_keeps_going_only_if_something_can_be_read(self):
        said = self.build("--keep-going", "missing", "gone", code=1)
        self.assertIn("none of the inputs can be opened", said)
        self.assertFalse((self.directory / "x.quire").exists())

    def test_names_the_first_few_and_verbose_names_all(self):
        for i in range(30):
            self.write(f"{i:02}.warc.gz", b"no gzip")
        said = self.build("crawl")
        self.assertIn("warning: 30 files do not match their names:", said)
        self.assertIn("00.warc.gz: is named like a WARC", said)
        self.assertIn("and 10 more; --verbose names all", said)
        self.assertNotIn("29.warc.gz", said)
        self.assertEqual(self.build("-v", "crawl").count("is named like a WARC"), 30)
        # As direct inputs.
        said = self.build("crawl/00.warc.gz")
        self.assertIn("warning: 1 file does not match its name:\n"
                      "  crawl/00.warc.gz: is named like a WARC", said)

    def test_verbose_names_what_is_left_out(self):
        self.write("file", b"contents")
        os.symlink("file", self.crawl / "link")
        os.symlink("nowhere", self.crawl / "dangling")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        here = os.getcwd()
        os.chdir(self.crawl)
        listener.bind("socket")
        os.chdir(here)
        said = self.build("crawl")
        self.assertIn("warning: left out: 2 symbolic links, 1 device, pipe or socket; "
                      "--verbose names them", said)
        self.assertNotIn("crawl/link", said)
        said = self.build("-v", "crawl")
        for line in ("left out, a symbolic link: crawl/link\n",
                     "left out, a symbolic link: crawl/dangling\n",
                     "left out, a device, pipe or socket: crawl/socket\n"):
            self.assertEqual(said.count(line), 1, said)

    def test_names_records_and_files_that_deviate(self):
        self.write("a.jsonl", b'{"id":"1","x":NaN}\n{"id":"2"}\n{"x":0}\n')
        self.write("b.csv", b"id\tt\n3\t16\"\n")
        split = ("--split", "lines", "--id-field", "id")
        said = self.build(*split, "--delimiter", "tab", "crawl")
        self.assertIn("warning: 1 record lacks a field or is malformed; it is kept, by "
                      "FILE:LINE:\n  crawl: ", said)
        self.assertIn("warning: 1 part of the inputs is unusual or changed; it was read:\n"
                      "  crawl: ", said)
        self.assertIn("line 1: is not JSON: expected a value at byte 15", said)
        # A field that no record has.
        said = self.build("--split", "lines", "--id-field", "x.y", "crawl/a.jsonl", code=1)
        self.assertIn('none of its 3 records has a usable field "x.y"', said)
        said = self.build("--keep-going", "--split", "lines", "--id-field", "x.y",
                          "crawl/a.jsonl", code=1)
        self.assertIn('none of its 3 records has a usable field "x.y"', said)
        self.assertEqual(self.document_count(), 3)
        self.write("p.parquet", b"PAR1 and more")
        for path in ("crawl/p.parquet", "crawl"):
            said = self.build(path)
            self.assertIn("warning: 1 file is kept as it is, in a format that other programs "
                          "convert:\n  " + path, said)
            self.assertIn("the tar that quire-pack parquet makes of its rows", said)
        said = self.build(*split, "--exclude", "*.csv", "crawl", code=1)
        self.assertIn("is Parquet, and has no lines; give it as an input of its own", said)
        for arguments, message in (
                ((*split, "--delimiter", "ab"), b'must be one character of ASCII, or tab'),
                (("--split", "lines", "--delimiter", ";"), b"--delimiter separates the fields")):
            refused = self.run_quired("build", "-o", "y.quire", *arguments, "crawl")
            self.assertEqual(refused.returncode, 2)
            self.assertIn(message, refused.stderr)

    def test_keeps_typed_fields(self):
        self.write("a.jsonl", b'{"lang": "de", "meta": {"n": 1}, "mixed": 1, "at": "2024-01-31"}\n'
                              b'{"lang": "fr", "mixed": "x", "at": "2024-01-31T12:00:00Z"}\n')
        split = ("--split", "lines")
        said = self.build(*split, "--field", "lang", "--field", "n=meta.n", "--field", "mixed",
                          "--time-field", "at", "crawl/a.jsonl")
        self.assertIn("fields: lang string, n integer, mixed string\n", said)
        self.assertIn('warning: field "mixed" has values of several types (string, integer), and '
                      "all are stored as strings", said)
        self.assertEqual(self.inspect()["fields"],
                         {"lang": "string", "n": "integer", "mixed": "string"})
        said = self.build(*split, "--field", "none", "crawl/a.jsonl", code=1)
        self.assertIn('no record has a value for the field "none"', said)
        for arguments, message in (
                ((*split, "--field", "id"), b"--field: "),
                ((*split, "--field", "x="), b'--field must be NAME or NAME=PATH, got "x="'),
                ((*split, "--field", "x", "--field", "x=y"), b'--field gives "x" twice'),
                (("--field", "x"), b"--field requires --split")):
            refused = self.run_quired("build", "-o", "y.quire", *arguments, "crawl")
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(message, refused.stderr)

    def pack_with(self, *lines):
        """Lines of sh run instead of quire-pack; $call is the number of the call."""
        program = self.directory / "pack"
        program.write_text("\n".join((
            "#!/bin/sh", f"cd {shlex.quote(str(self.directory))}", "echo >> calls",
            "call=$(wc -l < calls)", *lines)) + "\n")
        program.chmod(0o755)
        (self.directory / "calls").write_text("")
        self.enterContext(unittest.mock.patch.dict(os.environ, QUIRE_PACK=str(program)))

    def test_reads_rows_of_parquet_by_a_program(self):
        rows = "".join(json.dumps({"i": f"row {n}", "t": f"text {n} " * 200}) + "\n"
                       for n in range(2000))
        (self.directory / "rows").write_text(rows)
        self.write("p.parquet", b"PAR1 and more")
        split = ("--split", "lines", "--id-field", "i", "--text-field", "t",
                 "--block-size", "4KiB", "crawl/p.parquet")
        self.pack_with("cat rows")
        self.build(*split)
        calls = len((self.directory / "calls").read_text())
        self.assertEqual(self.document_count(), 2000)
        self.assertGreater(calls, 1)
        out = self.directory / "x.quire"
        files = {path.name: path.read_bytes() for path in out.iterdir()}
        # A call that fails at its end, or that gives other rows.
        faults = ((["cat rows; echo why >&2; exit 3"], "ended with exit code 3: why"),
                  (["head -1 rows", "kill -9 $$"], "ended by signal 9"),
                  (["sed s/text/tent/ rows"], "in the first pass"))
        shutil.rmtree(out)
        for call in range(1, calls + 1):
            for lines, message in faults[:2] if call == 1 else faults:
                self.pack_with(f"if [ $call != {call} ]; then cat rows; else", *lines, "fi")
                self.assertIn(message, self.build(*split, code=1))
                self.assertFalse(out.exists())
        self.pack_with("cat rows")
        self.build(*split)
        self.assertTrue(files == {path.name: path.read_bytes() for path in out.iterdir()})
        self.assertIn("--resume needs inputs that a later run can read again, got crawl/p.parquet",
                      self.build(*split, "--resume", code=2))
        os.environ["QUIRE_PACK"] = "/absent/quire-pack"
        said = self.build(*split, code=1)
        self.assertIn("crawl/p.parquet: /absent/quire-pack cannot be started: No such file", said)
        self.assertIn("quire-archive[pack]", said)

    def test_excludes_and_renames(self):
        self.write(".git/config", b"1")
        self.write("html/index.html", b"2")
        self.write("html/app.js.map", b"3")
        self.write("html/build/x", b"4")
        self.write("build/y", b"5")
        self.write("html/sub/page.html", b"6")
        said = self.build("--exclude", ".git/", "--exclude", "*.map", "--exclude=/build",
                          "--strip-prefix", "html/", "--prefix", "site/", "crawl")
        self.assertIn("3 documents or directories were excluded", said)
        self.assertEqual(self.document_count(), 3)
        # Ids in the segment: the first is whole, the next is stored as a difference.
        segment = (self.directory / "x.quire" / "segment-00000000").read_bytes()
        self.assertIn(b"site/build/x", segment)
        self.assertNotIn(b"html/build", segment)
        said = self.build("-v", "--exclude", "*.map", "crawl")
        self.assertIn("left out, excluded: crawl/html/app.js.map\n", said)
        refused = self.run_quired("build", "-o", "y.quire", "--exclude", "[a", "crawl")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(b'--exclude "[a": a [ must have its ]', refused.stderr)

    def test_drops_the_dot_that_tar_puts_before_names(self):
        files = {"./a/b": b"1", "././c": b"2", "d/./e": b"3"}
        self.build("-", stdin=tar_of(files))
        with_dots = (self.directory / "x.quire" / "segment-00000000").read_bytes()
        self.build("-", stdin=tar_of({"a/b": b"1", "c": b"2", "d/./e": b"3"}))
        self.assertEqual((self.directory / "x.quire" / "segment-00000000").read_bytes(), with_dots)

    def test_help_names_few_codecs_and_help_all_every_one(self):
        for command in ("build", "recompress"):
            with self.subTest(command=command):
                short = self.run_quired(command, "--help")
                self.assertEqual(short.returncode, 0, short.stderr)
                self.assertNotIn(b"rlz-zzz", short.stdout)
                full = self.run_quired(command, "--help-all")
                self.assertEqual((full.returncode, full.stderr), (0, b""))
                self.assertRegex(full.stdout, rb"(?m)^  rlz-zzz +relative Lempel-Ziv, offsets, lengths and")
                self.assertRegex(full.stdout, rb"(?m)^  fsst +FSST strings")
                # Only a build has a default for the objective.
                has_default = b"--objective NAME=balanced" in short.stdout
                self.assertEqual(has_default, command == "build")

    def test_starts_no_program_whatever_the_contents(self):
        programs = self.directory / "bin"
        programs.mkdir()
        for name in ("lzop", "lrzip", "grzip", "lz4", "zstd", "xz", "bzip2", "gzip", "compress",
                     "uncompress", "lzip", "lzma", "unzip", "tar", "uudecode", "sh"):
            program = programs / name
            program.write_text(f"#!/bin/bash\necho {name} >> {self.directory}/started\n")
            program.chmod(0o755)
        starts = {
            "lzop": b"\x89LZO\0\r\n\x1a\n\x10\x30\x20\xa0\x09\x40\x01\x05" + bytes(60),
            "lrzip": b"LRZI\0\x06" + bytes(60), "grzip": b"GRZipII\0\x02\x04:)" + bytes(60),
            "uu": b"begin 644 notes.txt\n#0V%T\n`\nend\n", "rpm": b"\xed\xab\xee\xdb\x03" + bytes(200)}
        environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}")
        for name, contents in starts.items():
            self.write(f"in/{name}", contents)
            self.write(f"{name}.gz", gzip.compress(contents))
            self.write(f"{name}.tar", tar_of({name: contents}))
        self.write("all.wacz", wacz_of({f"archive/{n}.warc": c for n, c in starts.items()}))
        inputs = [("crawl/in",), ("crawl",), ("--expand", "--keep-going", "crawl"),
                  ("--split", "lines", "--expand", "--exclude", "*.wacz", "crawl")]
        inputs += [(f"crawl/in/{name}",) for name in starts]
        inputs += [("--split", "lines", "crawl/lzop.gz")]
        for arguments in inputs:
            result = subprocess.run([QUIRED, "build", "--force", "-o", "x.quire", "--codec", "zstd",
                                     *arguments], cwd=self.directory, env=environment, check=False,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn(result.returncode, (0, 1), result.stderr)
            self.assertFalse((self.directory / "started").exists(), arguments)
        self.build("crawl/in")
        self.assertEqual(self.inspect()["size_bytes"], sum(map(len, starts.values())))

    def test_says_which_urls_are_unknown(self):
        self.write("a", b"1")
        for arguments in (("build", "-o", "y.quire", "gs://bucket/x.warc.gz"),
                          ("build", "-o", "y.quire", "--keep-going", "crawl/a", "ftp://h/x"),
                          ("build", "-o", "gs://bucket/y.quire", "crawl/a"),
                          ("plan", "gs://bucket/x")):
            result = self.run_quired(*arguments)
            self.assertIn(result.returncode, (1, 2))
            self.assertIn(b"must be a local path, got the URL \"", result.stderr)
        self.assertFalse((self.directory / "y.quire").exists())
        # A directory may be called like that.
        (self.directory / "s3:/bucket").mkdir(parents=True)
        (self.directory / "s3:/bucket/b").write_bytes(b"2")
        self.build("./s3://bucket")
        self.assertEqual(self.document_count(), 1)

    def test_advice_to_cut_a_file_helps(self):
        whole = gzip.compress(b"one\ntwo\n")
        self.write("x.log.gz", whole + b"words after the end")
        said = self.build("--split", "lines", "crawl/x.log.gz", code=1)
        advice = re.search(r"its last 19 bytes, from byte (\d+) .*: (truncate -s \d+) FILE", said)
        self.assertIsNotNone(advice, said)
        self.assertEqual(int(advice[1]), len(whole))
        said = self.build("--split", "lines", "--keep-going", "crawl/x.log.gz", code=1)
        self.assertEqual(self.document_count(), 2)
        self.assertNotIn("altered", said)
        subprocess.run([*shlex.split(advice[2]), "crawl/x.log.gz"], cwd=self.directory, check=True)
        self.build("--split", "lines", "crawl/x.log.gz")
        self.assertEqual(self.document_count(), 2)

    def test_advice_to_keep_a_damaged_file_helps(self):
        contents = gzip.compress(b"text")[:-6]
        self.write("x.gz", contents)
        said = self.build("crawl/x.gz", code=1)
        self.assertIn("put it into a directory and give the directory as the input", said)
        self.build("crawl")
        self.assertEqual(self.document_count(), 1)
        self.assertEqual(self.inspect()["size_bytes"], len(contents))
        # A directory would not help here.
        said = self.build("--split", "lines", "crawl/x.gz", code=1)
        self.assertNotIn("directory", said)
        self.assertIn("--keep-going leaves out what cannot be read", said)
        self.write("y", b"line\n")
        self.build("--split", "lines", "--keep-going", "crawl/x.gz", "crawl/y", code=1)
        self.assertEqual(self.inspect()["unread_input_count"], 1)

    def test_advice_about_windows_helps(self):
        # A frame of "text", with a window of 2 GiB.
        self.write("x.zst", b"\x28\xb5\x2f\xfd\0" + bytes([21 << 3]) + b"\x21\0\0text")
        said = self.build("--split", "lines", "crawl/x.zst", code=1)
        advice = re.search(r"a window of 2\.?0? GiB is over the limit of 1\.?0? GiB .*give "
                           r"(--window-max \S+?);", said)
        self.assertIsNotNone(advice, said)
        self.build("--split", "lines", *advice[1].split(), "crawl/x.zst")
        self.assertEqual(self.inspect()["size_bytes"], 4)
        for size in ("3GiB", "1KiB"):
            said = self.build("--window-max", size, "crawl/x.zst", code=2)
            self.assertIn("--window-max must be 1MiB to 2GiB, got " + size, said)

    def test_advice_about_volumes_helps(self):
        for i in range(3):
            self.write(f"files/{i}", str(i).encode() * 12000)
        volumes = [f"v{i}.tar" for i in range(1, 8)]
        names = [argument for volume in volumes for argument in ("-f", volume)]
        subprocess.run(["tar", "-c", "-M", "-L", "10", *names, "files"], check=True,
                       cwd=self.crawl, stdin=subprocess.DEVNULL)
        said = self.build("crawl/v2.tar", code=1)
        self.assertIn("crawl/v2.tar: is a later volume of a tar of several", said)
        self.assertIn("tar --extract --multi-volume", said)
        said = self.build("crawl/v1.tar", code=1)
        self.assertIn("tar --extract --multi-volume", said)
        used = [argument for volume in volumes if (self.crawl / volume).exists()
                for argument in ("-f", self.crawl / volume)]
        out = self.directory / "out"
        out.mkdir()
        subprocess.run(["tar", "--extract", "--multi-volume", *used], check=True, cwd=out,
                       stdin=subprocess.DEVNULL)
        self.build("out")
        self.assertEqual(self.inspect()["size_bytes"], 36000)

    def test_warns_of_a_tar_without_its_end(self):
        whole = tar_of({"a": b"1", "b": b"2"})
        cut = whole[:4 * 512]
        for name, contents in (("x.tar", cut), ("x.tar.gz", gzip.compress(cut))):
            self.write(name, contents)
            said = self.build(f"crawl/{name}")
            self.assertIn("warning: 1 part of the inputs is unusual or changed; it was read:\n"
                          f"  crawl/{name}: ends after 2 entries without the zeros", said)
            self.assertEqual(self.document_count(), 2)
        self.assertNotIn("unusual", self.build("-", stdin=whole))

    def test_names_records_whose_checksum_in_a_wacz_is_wrong(self):
        records = b"".join(warc_record(f"http://u/{i}", "text") for i in range(5))
        whole = wacz_of({"archive/a.warc": records, "archive/b.warc": warc_record("http://v/", "b")})
        self.write("x.wacz", whole.replace(b"u/2\r\nContent-Length: 4\r\n\r\ntext",
                                           b"u/2\r\nContent-Length: 4\r\n\r\ntexx", 1))
        self.build("crawl/x.wacz", code=1)
        said = self.build("--keep-going", "crawl/x.wacz", code=1)
        doubtful = ("documents of the same compressed part are in the archive unchecked, and may be "
                    "altered: \"http://u/0\" to \"http://u/")
        self.assertIn(doubtful, said)
        self.assertIn(doubtful, self.run_quired("inspect", "x.quire").stdout.decode())

    def test_plan_has_the_limits_of_build(self):
        self.write("a", b"12345678901")
        result = self.run_quired("plan", "crawl", "--input-size-max", "10")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"give a larger --input-size-max", result.stderr)
        self.assertEqual(result.stdout, b"")


if __name__ == "__main__":
    unittest.main()
