# SPDX-License-Identifier: Apache-2.0
"""The fsspec file system: every document has one path, and every path its document."""
import asyncio
import concurrent.futures
import gc
import io
import os
import pathlib
import pickle
import random
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

import fsspec

import quire_archive as quire
import quire_archive.fs
from quire_archive.fs import QuireFileSystem, make_path
from package_harness import LiveServer, QUIRED, SEED, build, environment
# pylint: disable=wrong-import-order
from crawl_test import Crawl

# Ids that are empty names, directories and documents at once, or no text.
LONG_ID = b"long/" + b"n" * 300
ODD_IDS = [LONG_ID, b"%2E", b"%00", b"q%2500", b"plain.txt",
           b"a", b"a/", b"a//", b"a/b", b"a/b/c", b"a-b", b"a%2Fb", b"%", b"%empty",
           b"%self", b"x/%self", b"https://example.org/", b"https://example.org/?q=[1]*",
           "\u00e4/\u20ac".encode(), b"\xff\xfe/\x80", b"dir/.", b"dir/..", b"c::d", b"bell\x07/tab\tx",
           b"deep/1/2/3/4"]


def write_tar(path, documents):
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in documents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


class FilesystemTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        draw = random.Random(SEED)
        cls.tables = {f"t{n % 3}/part-{n:03}.csv": b"id,text\n" + b"".join(
            b"%d,row %d\n" % (row, draw.randrange(999)) for row in range(n)) for n in range(120)}
        write_tar(directory / "tables.tar", cls.tables)
        # Records of a crawl may have any id.
        crawl = Crawl()
        cls.odd = {}
        for number, name in enumerate(ODD_IDS):
            crawl.add("resource", name.decode("latin-1"), "2021-01-01T00:00:00Z",
                      b"body %d" % number, "text/plain")
            raw = crawl.records[-1].replace(name.decode("latin-1").encode(), name)
            crawl.records[-1] = raw
        for date in ("2020-01-01T00:00:00Z", "2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"):
            crawl.add_response("http://often.org/page", date, date.encode())
        crawl.add("conversion", "http://often.org/text", "2021-01-01T00:00:00Z", b"text",
                  "text/plain")
        crawl.write(directory / "odd.warc.gz")
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            f"tables={build(directory / 'tables.quire', directory / 'tables.tar')}",
            f"odd={build(directory / 'odd.quire', directory / 'odd.warc.gz')}"]))
        cls.fs = fsspec.filesystem("quire", server=cls.server.address)
        cls.client = cls.enterClassContext(quire.connect(cls.server.address))

    def test_the_entry_point_and_urls(self):
        self.assertIsInstance(self.fs, QuireFileSystem)
        with fsspec.open(f"quire://{self.server.address}/tables/t0/part-003.csv") as file:
            self.assertEqual(file.read(), self.tables["t0/part-003.csv"])
        with environment(QUIRE_SERVER=self.server.address):
            QuireFileSystem.clear_instance_cache()
            with fsspec.open("quire://tables/t1/part-004.csv", "rt") as file:
                self.assertEqual(file.readline(), "id,text\n")
        copy = pickle.loads(pickle.dumps(self.fs))
        self.assertEqual(copy.cat_file("tables/t0/part-003.csv"), self.tables["t0/part-003.csv"])

    def test_every_document_has_one_path(self):
        found = self.fs.find("odd")
        ids = {document.id for document in self.client["odd"]}
        self.assertLessEqual({b"a", b"a/", b"a//", b"a/b", b"a/b/c", b"%self", b"x/%self"}, ids)
        ids.remove(b"http://often.org/text")
        self.assertEqual(len(found), len(ids))
        self.assertEqual(len(set(found)), len(found))
        read = self.fs.cat(found)
        self.assertEqual({data for data in read.values()},
                         {self.client["odd"].read(name) for name in ids})
        for path in found:
            info = self.fs.info(path)
            self.assertEqual((info["type"], info["size"]), ("file", len(read[path])), path)
            with self.fs.open(path) as file:
                self.assertEqual(file.read(), read[path])
        for name in ids:
            self.assertEqual(self.fs.cat_file(make_path("odd", name)),
                             self.client["odd"].read(name), name)

    def test_a_document_that_is_a_directory(self):
        self.assertEqual(self.fs.info("odd/a")["type"], "directory")
        self.assertIn("odd/a/%self", self.fs.ls("odd/a", detail=False))
        self.assertEqual(self.fs.cat_file("odd/a"), self.fs.cat_file("odd/a/%self"))
        self.assertNotEqual(self.fs.cat_file("odd/a"), self.fs.cat_file("odd/a/%empty"))

    def test_the_newest_of_several(self):
        path = "odd/http:/%empty/often.org/page"
        self.assertEqual(self.fs.cat_file(path), self.client["odd"].read("http://often.org/page"))
        self.assertEqual(self.fs.modified(path).isoformat(), "2022-01-01T00:00:00+00:00")
        (entry,) = [e for e in self.fs.ls("odd/http:/%empty/often.org")]
        self.assertEqual((entry["name"], entry["size"]), (path, len(self.fs.cat_file(path))))

    def test_listings(self):
        self.assertEqual([e["name"] for e in self.fs.ls("")], ["odd", "tables"])
        self.assertEqual(self.fs.ls("tables", detail=False), ["tables/t0", "tables/t1", "tables/t2"])
        self.assertEqual(sorted(self.fs.find("quire://tables")),
                         sorted(f"tables/{name}" for name in self.tables))
        self.assertEqual(sorted(self.fs.glob("tables/*/part-00*.csv")),
                         sorted(f"tables/{name}" for name in self.tables if "part-00" in name))
        self.assertEqual([d for _, d, _ in self.fs.walk("tables")][0], ["t0", "t1", "t2"])
        self.assertTrue(self.fs.isdir("tables/t0"))
        self.assertFalse(self.fs.exists("tables/none"))
        for call in (lambda: self.fs.info("tables/none"), lambda: self.fs.ls("none"),
                     lambda: self.fs.cat_file("tables/none"), lambda: self.fs.open("none/a"),
                     lambda: self.fs.ls("tables/none")):
            with self.assertRaises(FileNotFoundError):
                call()
        with self.assertRaises(NotImplementedError):
            self.fs.modified("tables/t0")
        for call in (lambda: self.fs.open("tables/new", "wb"), lambda: self.fs.mkdir("tables/new"),
                     lambda: self.fs.pipe("tables/new", b""), lambda: self.fs.rm_file("tables/t0")):
            with self.assertRaisesRegex(NotImplementedError, "archives are read-only"):
                call()

    def test_ranges_are_slices(self):
        draw = random.Random(SEED)
        names = draw.choices(list(self.tables), k=500)
        bounds = [(draw.choice((None, 0, 3, 50, -5, 5000)), draw.choice((None, 0, 9, 80, -3, 5000)))
                  for _ in names]
        paths = [f"tables/{name}" for name in names]
        found = self.fs.cat_ranges(paths, [b for b, _ in bounds], [e for _, e in bounds])
        for name, (begin, end), data in zip(names, bounds, found):
            self.assertEqual(data, self.tables[name][begin:end], (SEED, name, begin, end))
        first, missing = self.fs.cat_ranges(["tables/t0/part-003.csv", "tables/no"], 0, 4)
        self.assertEqual(first, b"id,t")
        self.assertIsInstance(missing, FileNotFoundError)
        with self.assertRaises(FileNotFoundError):
            self.fs.cat_ranges(["tables/no"], 0, 4, on_error="raise")

    def test_a_tree_is_read_without_asking_for_each_file(self):
        tables = {f"tables/{name}": data for name, data in self.tables.items()}
        # It is asked only whether a directory is a document, too.
        with unittest.mock.patch.object(quire.AsyncArchive, "document", autospec=True,
                                        side_effect=quire.DocumentNotFound("")) as document, \
                tempfile.TemporaryDirectory() as local:
            fs = QuireFileSystem(self.server.address, skip_instance_cache=True)
            self.assertEqual(fs.du("tables"), sum(map(len, self.tables.values())))
            self.assertEqual(fs.du("tables/t1", total=False), {
                name: len(data) for name, data in tables.items()
                if name.startswith("tables/t1/")})
            self.assertEqual(fs.cat("tables", recursive=True), tables)
            fs.get("tables", local, recursive=True)
            self.assertEqual(self.local_files(local), {
                os.fsencode(name): data for name, data in self.tables.items()})
        self.assertLess(document.call_count, 20)

    def local_files(self, directory):
        """Name, from the directory on -> contents."""
        top = os.fsencode(directory)
        return {os.path.relpath(os.path.join(path, name), top):
                pathlib.Path(os.fsdecode(os.path.join(path, name))).read_bytes()
                for path, _, names in os.walk(top) for name in names}

    def test_local_files_have_ids_as_names(self):
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaisesRegex(OSError, r"^1 of \d+ files were not written: odd/long/nn.*"
                                        "File name too long") as caught:
                self.fs.get("odd", f"{directory}/all", recursive=True)
            self.assertNotIn(";", str(caught.exception))
            found = self.local_files(f"{directory}/all")
            ids = {document.id for document in self.client["odd"]} - {
                LONG_ID, b"http://often.org/text"}
            self.assertEqual(len(found), len(ids))
            self.assertEqual(set(found.values()), {self.client["odd"].read(name) for name in ids})
            for name, local in ((b"a%2Fb",) * 2, (b"\xff\xfe/\x80",) * 2, (b"c::d",) * 2,
                                (b"bell\x07/tab\tx",) * 2, (b"dir/..", b"dir/%2E%2E"),
                                (b"%2E", b"%252E"), (b"%00", b"%2500"), (b"q%2500", b"q%252500"),
                                (b"a", b"a/%self"), (b"%self", b"%25self"),
                                (b"https://example.org/?q=[1]*",
                                 b"https:/%empty/example.org/?q=[1]*")):
                self.assertEqual(found[local], self.client["odd"].read(name), name)

    def test_a_failed_write_leaves_the_old_file(self):
        paths = ["tables/t1/part-001.csv", "tables/t2/part-119.csv"]
        size_max = len(self.tables["t1/part-001.csv"]) + 1
        with tempfile.TemporaryDirectory() as directory:
            local = [pathlib.Path(directory, "small"), pathlib.Path(directory, "large")]
            link = pathlib.Path(directory, "link")
            link.symlink_to(local[1])
            for path in local:
                path.write_text("old")
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            # Python ignores the signal of this limit: a write fails.
            resource.setrlimit(resource.RLIMIT_FSIZE, (size_max, limits[1]))
            try:
                with self.assertRaisesRegex(OSError, "1 of 2 files .*File too large"):
                    self.fs.get(paths, list(map(str, local)))
                for get in self.fs.get, self.fs.get_file:
                    with self.assertRaisesRegex(OSError, "File too large"):
                        get(paths[1], str(link))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertEqual(self.local_files(directory), {
                b"small": self.tables["t1/part-001.csv"], b"large": b"old", b"link": b"old"})
            self.fs.get_file(paths[1], str(link))
            self.assertTrue(link.is_symlink())
            self.assertEqual(local[1].read_bytes(), self.tables["t2/part-119.csv"])
            # The name of the file aside must not be longer than this one of 255 bytes.
            self.fs.get(paths[0], f"{directory}/{'n' * 255}")
            pipe = f"{directory}/pipe"
            os.mkfifo(pipe)
            with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
                self.fs.get(paths[0], pipe)
                self.assertEqual(reader.read(), self.tables["t1/part-001.csv"])

    def test_get_places_files_as_fsspec_does(self):
        name = "t1/part-004.csv"
        with tempfile.TemporaryDirectory() as directory:
            self.fs.get(f"tables/{name}", f"{directory}/new.csv")
            self.fs.get(f"tables/{name}", directory)
            self.fs.get("tables/t1/part-00?.csv", f"{directory}/some/")
            self.fs.get("tables/t1", f"{directory}/new", recursive=True)
            self.fs.get("tables/t1", f"{directory}/some", recursive=True)
            self.fs.get([f"tables/{name}", "tables/t2/part-005.csv"], f"{directory}/list")
            self.fs.get([f"tables/{name}"], [f"{directory}/%5B/x"])
            found = self.local_files(directory)
            t1 = {os.path.basename(path) for path in self.tables if path.startswith("t1/")}
            self.assertEqual({os.fsdecode(path) for path in found}, {
                "new.csv", "part-004.csv", "list/part-004.csv", "list/part-005.csv", "%5B/x",
                *(f"some/{path}" for path in t1 if path.startswith("part-00")),
                *(f"{top}/{path}" for top in ("new", "some/t1") for path in t1)})
            self.assertEqual(found[b"%5B/x"], self.tables[name])
            with self.assertRaisesRegex(OSError, "1 of 2 files .* is the name of another file"):
                self.fs.get(["tables/t1/part-004.csv"] * 2, [f"{directory}/same"] * 2)
            for paths in ("tables/none", ["tables/none"], "none/a"):
                with self.assertRaises(FileNotFoundError):
                    self.fs.get(paths, f"{directory}/none")
            with self.assertRaisesRegex(OSError, "1 of 2 files .*: tables/none: quire://tables/none"):
                self.fs.get([f"tables/{name}", "tables/none"], [f"{directory}/{n}" for n in "ab"])
            self.assertEqual(pathlib.Path(directory, "a").read_bytes(), self.tables[name])

    def test_a_file_system_is_collected_in_its_own_loop(self):
        fs = QuireFileSystem(self.server.address, skip_instance_cache=True)
        fs.ls("tables")
        client, loop = fs._client, fs.loop  # pylint: disable=protected-access
        kept, failures = [fs], []
        del fs

        async def drop():
            kept.clear()
            gc.collect()

        # It would wait for this loop, in vain.
        with unittest.mock.patch.object(sys, "unraisablehook", failures.append):
            asyncio.run_coroutine_threadsafe(drop(), loop).result(60)
        # pylint: disable=protected-access
        concurrent.futures.wait(list(quire_archive.fs._closing))
        self.assertEqual(failures, [])
        self.assertIsNone(client._channel)

    def test_a_process_ends_without_complaints(self):
        program = ("import fsspec, sys\n"
                   "print(fsspec.filesystem('quire', server=sys.argv[1]).ls('tables'))\n")
        run = subprocess.run([sys.executable, "-c", program, self.server.address], check=True,
                             capture_output=True)
        self.assertEqual(run.stderr, b"")

    def test_listings_are_kept_until_they_are_forgotten(self):
        fs = QuireFileSystem(self.server.address, skip_instance_cache=True)
        expected = fs.ls("tables", detail=False)
        stale = [{"name": "tables/old", "size": 0, "type": "file"}]
        fs.dircache["tables"] = stale
        self.assertEqual(fs.ls("tables"), stale)
        self.assertEqual(fs.ls("tables", detail=False, refresh=True), expected)
        fs.dircache["tables"] = stale
        fs.invalidate_cache()
        self.assertEqual(fs.ls("tables", detail=False), expected)

    def test_bounds_that_are_no_integers_are_named(self):
        path = "tables/t0/part-003.csv"
        with self.assertRaisesRegex(TypeError, r"starts\[1\] must be int or None, got 1\.5"):
            self.fs.cat_ranges([path, path], [0, 1.5], [4, 4])
        with self.assertRaisesRegex(TypeError, r"ends\[0\] must be int or None, got '4'"):
            self.fs.cat_ranges([path], [0], ["4"])
        with self.assertRaisesRegex(TypeError, r"^end must be int or None, got 4\.0"):
            self.fs.cat_file(path, start=0, end=4.0)

    def test_files_seek(self):
        name = "t2/part-119.csv"
        with self.fs.open(f"tables/{name}", block_size=100) as file:
            self.assertEqual(file.size, len(self.tables[name]))
            file.seek(-20, 2)
            self.assertEqual(file.read(), self.tables[name][-20:])
            file.seek(7)
            self.assertEqual(file.read(500), self.tables[name][7:507])

    def test_a_file_that_is_withdrawn_does_not_continue_with_zeros(self):
        text = b"some text " * 100
        with tempfile.TemporaryDirectory() as directory:
            rules = pathlib.Path(directory, "withdrawn")
            rules.write_text("")
            write_tar(pathlib.Path(directory, "pages.tar"), {"page": text})
            archive = build(f"{directory}/pages.quire", f"{directory}/pages.tar")
            with LiveServer(QUIRED, [archive], "--withdrawn", rules) as server, \
                    quire.connect(server.address) as client:
                fs = QuireFileSystem(server.address, skip_instance_cache=True)
                with fs.open("pages/page", block_size=100, cache_type="none") as file:
                    self.assertEqual(file.read(100), text[:100])
                    rules.write_text("pages id page block\n")
                    server.process.send_signal(signal.SIGHUP)
                    with self.assertRaises(quire.DocumentWithdrawn):
                        while True:
                            client["pages"].document("page")
                            time.sleep(0.02)
                    with self.assertRaises(quire.DocumentWithdrawn):
                        file.read(100)


if __name__ == "__main__":
    unittest.main()
