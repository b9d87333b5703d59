#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that export returns what build was given: archives are built, served and exported
with the programs themselves, and compared with the sources.

usage: export_test.py QUIRED QUIRE
"""
import gzip
import io
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer

SEED = 20261122
# Only a hang takes this long.
PATIENCE_SECONDS = 120
MTIME = 1_600_000_000
# Larger than all buffers between the server's disk and a stopped reader.
LARGE_SIZE_BYTES = 48 << 20


def warc_record(kind, uri, block, date="2022-01-02T03:04:05Z", version="1.0"):
    header = (f"WARC/{version}\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: {date}\r\n"
              f"WARC-Record-ID: <urn:uuid:{random.Random(uri + kind + date).getrandbits(128):032x}>\r\n"
              f"Content-Type: application/http\r\nContent-Length: {len(block)}\r\n\r\n")
    return header.encode() + block + b"\r\n\r\n"


def parse_warc(data):
    """Returns [(header fields, block)], with a parser that uses only Content-Length."""
    records, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n\r\n", at) + 4
        lines = data[at:end - 4].decode().split("\r\n")
        assert lines[0] in ("WARC/1.0", "WARC/1.1"), lines[0]
        fields = dict(line.split(": ", 1) for line in lines[1:])
        size = int(fields["Content-Length"])
        assert data[end + size:end + size + 4] == b"\r\n\r\n"
        records.append((fields, data[end:end + size]))
        at = end + size + 4
    return records


def members_of(data):
    """Returns [(name as bytes, mtime, contents)] of a tar."""
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as tar:
        return [(os.fsencode(member.name), member.mtime, tar.extractfile(member).read())
                for member in tar if member.isfile() or member.islnk()]


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.write_directory()
        cls.write_tar()
        cls.write_crawl()
        (cls.directory / "large").mkdir()
        draw = random.Random(SEED)
        cls.large = {}
        for number in range(48):
            cls.large[b"%02d" % number] = draw.randbytes(LARGE_SIZE_BYTES // 48)
            (cls.directory / "large" / f"{number:02}").write_bytes(cls.large[b"%02d" % number])
        for name, source in [("files", "files"), ("members", "members.tar"),
                             ("crawl", "crawl.warc.gz"), ("large", "large")]:
            cls.build(name, source)
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [cls.directory / f"{name}.quire" for name in ("files", "members", "crawl")]))

    @classmethod
    def build(cls, name, *sources):
        subprocess.run([QUIRED, "build", "-q", "-o", cls.directory / f"{name}.quire", "--codec", "zstd",
                        *(cls.directory / source for source in sources)], check=True)

    @classmethod
    def write_directory(cls):
        cls.files = {b"a": b"", b"sub/b.txt": b"text" * 1000, b"sub/\xff\xfe": b"not UTF-8",
                     "sub/später".encode(): b"later", b"n" * 200: b"long name",
                     b"with space\tand tab": b"x" * 70000, b"new\nline": b"y"}
        for number in range(1200):
            cls.files[b"many/%04d" % number] = b"number %d\n" % number
        root = os.fsencode(cls.directory / "files")
        for number, (name, data) in enumerate(cls.files.items()):
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            os.utime(path, (0, MTIME + number * 3))

    @classmethod
    def write_tar(cls):
        """Writes members with difficult properties, including duplicate names."""
        with tarfile.open(cls.directory / "members.tar", "w", format=tarfile.PAX_FORMAT,
                          encoding="utf-8", errors="surrogateescape") as tar:
            def add(name, data=b"", **fields):
                info = tarfile.TarInfo(os.fsdecode(name))
                info.size, info.mtime = len(data), MTIME
                for field, value in fields.items():
                    setattr(info, field, value)
                tar.addfile(info, io.BytesIO(data))
            add(b"first", b"one")
            add(b"dir", type=tarfile.DIRTYPE)
            add(b"link", type=tarfile.SYMTYPE, linkname="first")
            add(b"hard", type=tarfile.LNKTYPE, linkname="first")
            add(b"first", b"two", mtime=MTIME + 60)
            add(b"first", b"three", mtime=MTIME + 30)
            add(b"deep/" * 60 + b"end", b"long")
            add(b"\xe9t\xe9", b"latin-1", mtime=MTIME + 0.25)
            add("été".encode(), b"utf-8")
            add(b"../up", b"up")
            add(b"/etc/x", b"absolute")
            add(b"..", b"above")
            add(b"old", b"before 1970", mtime=-86400)
            add(b"empty")
            add(b"block", b"b" * 512)

    @classmethod
    def write_crawl(cls):
        draw = random.Random(SEED)
        cls.records = [warc_record("warcinfo", "urn:info", b"software: test\r\n")]
        for number in range(300):
            uri = f"http://example.org/{number % 40}/"
            date = f"2022-01-{number // 15 + 1:02}T00:00:00Z"
            body = b"HTTP/1.1 200 OK\r\n\r\n" + draw.randbytes(draw.randint(0, 3000))
            cls.records.append(warc_record("request", uri, b"GET / HTTP/1.1\r\n\r\n", date))
            cls.records.append(warc_record("response", uri, body, date, version="1.1"))
        with open(cls.directory / "crawl.warc.gz", "wb") as file:
            for record in cls.records:
                file.write(gzip.compress(record, mtime=0))

    def quire(self, *arguments, code=0, server=None, stdin=None, **options):
        """Returns (standard output, standard error)."""
        run = subprocess.run([QUIRE, "--server", server or self.server.address, *arguments],
                             input=stdin, capture_output=True, check=False,
                             timeout=PATIENCE_SECONDS, **options)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout, run.stderr.decode()

    def test_a_directory_comes_back_as_tar(self):
        path = self.directory / "out.tar"
        _, messages = self.quire("export", "files", "--tar", path)
        self.assertIn(f"exported {len(self.files):,} documents", messages)
        times = {name: MTIME + number * 3 for number, name in enumerate(self.files)}
        self.assertEqual(members_of(path.read_bytes()),
                         [(name, times[name], self.files[name]) for name in sorted(self.files)])
        # As other programs read it, and through a pipe.
        listed = subprocess.run(["tar", "-tf", path], check=True, capture_output=True)
        # GNU tar treats names as bytes without an option.
        self.assertEqual(listed.stderr.replace(
            b"tar: Ignoring unknown extended header keyword 'hdrcharset'\n", b""), b"")
        self.assertEqual(len(listed.stdout.splitlines()), len(self.files))
        self.assertEqual(self.quire("export", "files", "--tar", "-")[0], path.read_bytes())
        self.quire("export", "files", "--tar", self.directory / "out.tar.gz")
        self.assertEqual(gzip.decompress((self.directory / "out.tar.gz").read_bytes()),
                         path.read_bytes())

    def test_a_tar_comes_back_as_tar(self):
        source = members_of((self.directory / "members.tar").read_bytes())
        outside = {b"../up": b"%2E./up", b"/etc/x": b"%2Fetc/x", b"..": b"%2E."}
        source = [(outside.pop(name, name), *rest) for name, *rest in source]
        self.assertEqual(outside, {})
        out, messages = self.quire("export", "members", "--tar", "-")
        # A hard link is a separate document.
        exported = members_of(out)
        self.assertEqual([(name, data) for name, _, data in exported],
                         [(name, data) for name, _, data in source])
        self.assertEqual([mtime for _, mtime, _ in exported], [mtime for _, mtime, _ in source])
        self.assertIn("2 members have the name of an earlier one", messages)
        self.assertIn("3 ids that no file can be named by or that would be unpacked elsewhere",
                      messages)
        # The export is a source like the original.
        (self.directory / "again.tar").write_bytes(out)
        self.build("again", "again.tar")
        with LiveServer(QUIRED, [self.directory / "again.quire"]) as server:
            again = self.quire("export", "again", "--tar", "-", server=server.address)[0]
        self.assertEqual(again, out)

    def test_a_crawl_comes_back_as_warc(self):
        path = self.directory / "out.warc"
        self.quire("export", "crawl", "--warc", path)
        self.assertEqual(path.read_bytes(), b"".join(self.records))
        path = self.directory / "out.warc.gz"
        self.quire("export", "crawl", "--warc", path)
        data, members = path.read_bytes(), []
        while data:
            member = gzip.zlib.decompressobj(wbits=31)
            members.append(member.decompress(data))
            data = member.unused_data
        self.assertEqual(members, self.records)
        self.assertEqual(len(parse_warc(b"".join(members))), len(self.records))

    def test_files_become_resource_records(self):
        out, messages = self.quire("export", "files", "--warc", "-")
        self.assertIn("documents in records of type resource, 0 WARC records", messages)
        info, *records = parse_warc(out)
        self.assertEqual(info[0]["WARC-Type"], "warcinfo")
        self.assertEqual([block for _, block in records],
                         [self.files[name] for name in sorted(self.files)])
        self.assertEqual({fields["WARC-Type"] for fields, _ in records}, {"resource"})
        self.assertEqual(len({fields["WARC-Record-ID"] for fields, _ in records}), len(records))
        uris = [fields["WARC-Target-URI"] for fields, _ in records]
        self.assertIn("file:///sub/%FF%FE", uris)
        self.assertIn("file:///new%0Aline", uris)
        self.assertEqual(records[0][0]["WARC-Date"], "2020-09-13T12:26:40.000Z")
        # An archive can be built from it again.
        (self.directory / "files.warc").write_bytes(out)
        self.build("files-again", "files.warc")

    def test_ls_and_batch_write_every_document(self):
        for archive, count in [("crawl", len(self.records)), ("members", 13),
                               ("files", len(self.files))]:
            pages = self.directory / f"pages-{archive}"
            listing = self.quire("ls", archive, "-0")[0]
            self.assertEqual(listing.count(b"\0"), count)
            messages = self.quire("batch", archive, "-0", "--output-dir", pages, stdin=listing)[1]
            self.assertEqual(messages, "")
            self.assertEqual(len(os.listdir(pages)), count)
            written = sorted((pages / name).read_bytes() for name in os.listdir(pages))
            if archive == "crawl":
                self.assertEqual(written, sorted(self.records))
        self.assertEqual((self.directory / "pages-members" / "first@1").read_bytes(), b"two")
        for name in ("%2E.%2Fup", "%2Fetc%2Fx", "%2E."):
            self.assertTrue((self.directory / "pages-members" / name).is_file())

    def test_ls_by_level_lists_every_document(self):
        uuid = json.loads(self.quire("info", "files", "--json")[0])["uuid"]

        def walk(prefix):
            listing = self.quire("ls", "files", os.fsdecode(prefix), "-0", "--delimiter", "/",
                                 "--uuid", uuid)[0]
            for entry in listing.split(b"\0")[:-1]:
                yield from walk(entry) if entry.endswith(b"/") else [entry]

        found = list(walk(b""))
        self.assertEqual(b"\0".join(found) + b"\0", self.quire("ls", "files", "-0")[0])
        self.assertIn(b"sub/", self.quire("ls", "files", "--delimiter", "/")[0].splitlines())
        message = self.quire("ls", "files", "--uuid", uuid[:-1], code=1)[1]
        self.assertIn("is none of its earlier ones; it may have been replaced", message)

    def test_batch_tells_of_ids_that_come_again(self):
        pages = self.directory / "pages-repeated"
        messages = self.quire("batch", "members", "--output-dir", pages,
                              stdin=b"first\nempty\nfirst\nfirst\n")[1]
        self.assertIn("2 items are the same as an earlier one", messages)
        self.assertEqual(sorted(os.listdir(pages)), ["empty", "first"])
        out = self.quire("batch", "members", stdin=b"first\t@0\nfirst\t@2\n")[0]
        self.assertEqual(out, b"onethree")
        self.assertIn("occurrence 9", self.quire("batch", "members", stdin=b"first\t@9\n", code=1)[1])

    def test_mistakes_are_told(self):
        self.assertIn("--tar FILE, --warc FILE or --output-dir DIR",
                      self.quire("export", "files", code=2)[1])
        self.quire("export", "files", "--tar", "a", "--warc", "b", code=2)
        self.quire("export", "files", "--tar", "a", "-o", "b", code=2)
        self.assertFalse(os.path.exists("a"))
        self.assertIn("no archive", self.quire("export", "none", "--tar", "-", code=1)[1])

    def test_a_full_disk_leaves_the_file_as_it_was(self):
        path = self.directory / "full.tar"
        path.write_bytes(b"before")

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        messages = self.quire("export", "files", "--tar", path, code=1, preexec_fn=limit)[1]
        self.assertIn("File too large", messages)
        self.assertIn("was not written", messages)
        self.assertEqual(path.read_bytes(), b"before")
        self.assertEqual([name for name in os.listdir(self.directory) if name.startswith(".quire")], [])

    def start_on_socket(self, socket, archive):
        """Starts a server at a path that another one can take later."""
        server = subprocess.Popen(
            [QUIRED, "serve", archive, "--listen", f"unix:{socket}"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.kill)
        for line in server.stderr:
            if "listening on" in line:
                return server
        return self.fail("quired did not start")

    def begin_export(self, socket):
        """Starts an export whose reader has read a little and now waits."""
        export = subprocess.Popen(
            [QUIRE, "--server", f"unix:{socket}", "--timeout", "120s", "export", "large", "--tar", "-"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(export.wait)
        self.addCleanup(export.stderr.close)
        self.addCleanup(export.stdout.close)
        self.addCleanup(export.kill)
        return export, export.stdout.read(1 << 20)

    def test_an_export_survives_a_restart(self):
        socket = self.directory / "restart.socket"
        server = self.start_on_socket(socket, self.directory / "large.quire")
        export, out = self.begin_export(socket)
        server.kill()
        server.wait()
        socket.unlink(missing_ok=True)
        self.start_on_socket(socket, self.directory / "large.quire")
        out += export.stdout.read()
        self.assertEqual(export.wait(PATIENCE_SECONDS), 0, export.stderr.read())
        self.assertEqual({name: data for name, _, data in members_of(out)}, self.large)

    def test_an_archive_that_is_replaced_is_told(self):
        socket = self.directory / "replaced.socket"
        link = self.directory / "swap" / "large.quire"
        link.parent.mkdir()
        link.symlink_to(self.directory / "large.quire")
        server = self.start_on_socket(socket, link)
        export, _ = self.begin_export(socket)
        kept, _ = self.begin_export(socket)
        link.unlink()
        link.symlink_to(self.directory / "files.quire")
        # Streams in flight continue with the old contents.
        server.send_signal(signal.SIGHUP)
        for line in server.stderr:
            if re.search(r"archive large", line):
                break
        kept.stdout.read(1 << 20)
        # Repeated requests are refused.
        server.kill()
        server.wait()
        socket.unlink(missing_ok=True)
        self.start_on_socket(socket, link)
        for broken in (export, kept):
            broken.stdout.read()
            self.assertEqual(broken.wait(PATIENCE_SECONDS), 1)
            self.assertIn(b"was replaced by other contents during the export", broken.stderr.read())


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
