# SPDX-License-Identifier: Apache-2.0
"""Archives as Arrow: to_arrow(), and the programs that read it."""
import datetime
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import warnings

import daft
import duckdb
import grpc
import pandas
import polars
import pyarrow
import xxhash
from pyarrow import flight

import quire_archive as quire
from package_harness import (FakeServer, LiveServer, PACKAGE_TESTS, QUIRED, SEED, build, fail,
                             random_documents, write_corpus)
from quire_archive import _messages as messages
from quire_archive import arrow
from replay_crawl import write_crawl

DOCUMENTS = random_documents(2000)


class ArrowTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        write_corpus(DOCUMENTS, directory / "pages")
        write_crawl(directory / "crawl.warc.gz")
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            build(directory / "pages.quire", directory / "pages.tar"),
            build(directory / "web.quire", directory / "crawl.warc.gz")]))
        cls.client = cls.enterClassContext(quire.connect(cls.server.address))
        cls.pages = cls.client["pages"]

    def rows(self, reader):
        table = reader.read_all()
        table.validate(full=True)
        return table.to_pydict()

    def test_all_documents(self):
        listed = list(self.pages)
        found = self.rows(self.pages.to_arrow())
        self.assertEqual(list(found), [*arrow.COLUMNS, "text"])
        self.assertEqual(list(zip(found["id"], found["text"])), DOCUMENTS)
        self.assertEqual(found["ordinal"], list(range(len(DOCUMENTS))))
        self.assertEqual(found["size"], [document.size for document in listed])
        self.assertEqual(found["time"], [document.capture_time for document in listed])
        self.assertEqual(found["record_type"], [None] * len(listed))
        without = self.rows(self.pages.to_arrow(text=False))
        self.assertEqual(without, {name: found[name] for name in arrow.COLUMNS})
        self.assertEqual(self.rows(self.pages.to_arrow(["text", "size"])),
                         {name: found[name] for name in ("text", "size")})

    def test_batches_are_bounded(self):
        sizes = [batch.nbytes for batch in self.pages.to_arrow(["text"])]
        self.assertGreater(len(sizes), 2)
        self.assertLess(max(sizes), 6 << 20)

    def test_attributes_of_a_crawl(self):
        listed = list(self.client["web"])
        found = self.rows(self.client["web"].to_arrow())
        self.assertEqual(found["id"], [document.name for document in listed])
        self.assertEqual(found["time"], [document.capture_time for document in listed])
        self.assertEqual(found["type"], [document.media_type for document in listed])
        self.assertEqual(found["record_type"], [document.record_type for document in listed])
        self.assertIsInstance(found["time"][0], datetime.datetime)
        self.assertEqual(found["text"], [data for _, data in self.client["web"].scan()])

    def test_a_prefix(self):
        expected = sorted(document for document in DOCUMENTS if document[0].startswith("dir-1/"))
        for prefix in ("dir-1/", b"dir-1/"):
            found = self.rows(self.pages.to_arrow(prefix=prefix))
            self.assertEqual(list(zip(found["id"], found["text"])), expected)
        self.assertEqual(self.rows(self.pages.to_arrow(["id"], prefix="dir-1/"))["id"],
                         [name for name, _ in expected])
        self.assertEqual(self.pages.to_arrow(prefix="absent").read_all().num_rows, 0)

    def test_bytes_and_strings(self):
        schema = self.pages.to_arrow(binary=("id", "text")).schema
        self.assertEqual([schema.field(name).type for name in ("id", "text")],
                         [pyarrow.large_binary()] * 2)
        self.assertEqual(self.rows(self.pages.to_arrow(["id"], binary=("id",)))["id"],
                         [name.encode() for name, _ in DOCUMENTS])
        web = self.client["web"].to_arrow(["text"], prefix="https://", binary=())
        self.assertEqual(web.schema.field("text").type, pyarrow.large_string())
        ordinal = next(number for number, (_, data) in enumerate(DOCUMENTS)
                       if data.decode("utf-8", "replace").encode() != data)
        with self.assertRaisesRegex(ValueError, f"text of document {ordinal} is not UTF-8"):
            self.pages.to_arrow(binary=()).read_all()

    def test_what_is_not_possible(self):
        with self.assertRaisesRegex(ValueError, "no column 'url'; there are id, ordinal"):
            self.pages.to_arrow(["url"])
        with self.assertRaisesRegex(ValueError, "named twice"):
            self.pages.to_arrow(["id", "id"])
        with self.assertRaisesRegex(ValueError, "binary must be"):
            self.pages.to_arrow(binary="id")
        with self.assertRaises(quire.ArchiveNotFound):
            self.client["absent"].to_arrow()

    def test_withdrawn_documents(self):
        draw = random.Random(SEED + 41)
        documents = random_documents(300)
        gone = {name for name, _ in draw.sample(documents, 40)} | {
            documents[0][0], documents[1][0], documents[-1][0]}
        left = [found for found in documents if found[0] not in gone]
        with tempfile.TemporaryDirectory() as directory:
            write_corpus(documents, f"{directory}/pages")
            archive = build(pathlib.Path(directory, "pages.quire"), f"{directory}/pages.tar")
            rules = pathlib.Path(directory, "withdrawn")
            rules.write_text("".join(f"pages id {name} {draw.choice(('exclude', 'block'))}\n"
                                     for name in sorted(gone)))
            subprocess.run([QUIRED, "redact", "--quiet", archive, "-"], check=True,
                           input="".join(f"{name}\n" for name in sorted(gone)[::2]).encode())
            with LiveServer(QUIRED, [archive], "--withdrawn", rules) as server, \
                    quire.connect(server.address) as client:
                for text in (True, False):
                    count = quire.WithdrawnCount()
                    reader = client["pages"].to_arrow(text=text, withdrawn=count)
                    self.assertEqual(int(reader.schema.metadata[b"quire.document_count"]),
                                     len(documents))
                    found = self.rows(reader)
                    self.assertEqual(found["id"], [name for name, _ in left])
                    self.assertEqual(found.get("text"),
                                     [data for _, data in left] if text else None)
                    self.assertEqual(count.count, len(gone))
                    with self.assertWarnsRegex(
                            UserWarning, f"pages has {len(gone)} withdrawn documents"):
                        client["pages"].to_arrow(text=text).read_all()
                found = self.rows(client["pages"].to_arrow(prefix="dir-"))
                self.assertEqual(list(zip(found["id"], found["text"])), sorted(
                    document for document in left if document[0].startswith("dir-")))

    # --- Programs.

    def test_pandas(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = self.pages.to_arrow().read_pandas()
        self.assertEqual(list(zip(frame["id"], frame["text"])), DOCUMENTS)
        again = pandas.DataFrame.from_arrow(self.pages.to_arrow())
        self.assertEqual(list(zip(again["id"], again["text"])), DOCUMENTS)

    def test_polars(self):
        frame = polars.DataFrame(self.pages.to_arrow())
        self.assertEqual(list(zip(frame["id"], frame["text"])), DOCUMENTS)

    def test_duckdb(self):
        docs = self.pages.to_arrow()
        with duckdb.connect() as database:
            found = database.execute("select id, text from docs order by ordinal").fetchall()
            self.assertEqual(found, DOCUMENTS)
            docs = self.pages.to_arrow(text=False)
            self.assertEqual(
                database.execute("select count(*), sum(size) from docs").fetchone(),
                (len(DOCUMENTS), sum(len(data) for _, data in DOCUMENTS)))
        del docs

    def test_flight(self):
        with subprocess.Popen(
                [sys.executable, PACKAGE_TESTS.parent / "examples" / "flight_server.py",
                 self.server.address, "grpc://127.0.0.1:0"], stdout=subprocess.PIPE,
                text=True) as process:
            try:
                port = int(process.stdout.readline().split()[-1])
                client = self.enterContext(flight.connect(f"grpc://127.0.0.1:{port}"))
                names = [info.descriptor.path for info in client.list_flights()]
                self.assertEqual(names, [[b"pages"], [b"web"]])
                info = client.get_flight_info(flight.FlightDescriptor.for_path("pages"))
                found = client.do_get(info.endpoints[0].ticket).read_all()
                self.assertEqual(found.schema, self.pages.to_arrow().schema)
                self.assertEqual(list(zip(found["id"].to_pylist(), found["text"].to_pylist())),
                                 DOCUMENTS)
                ticket = b'{"archive": "pages", "columns": ["size"], "prefix": "dir-1/"}'
                found = client.do_get(flight.Ticket(ticket)).read_all()
                self.assertEqual(found.column("size").to_pylist(), [
                    len(data) for name, data in sorted(DOCUMENTS) if name.startswith("dir-1/")])
                for ticket, message in ((b"absent", "absent"), (b'{"archive": "a", "x": 1}', "x"),
                                        (b'{"archive": "pages", "columns": ["z"]}', "no column")):
                    with self.assertRaisesRegex(Exception, message):
                        client.do_get(flight.Ticket(ticket)).read_all()
            finally:
                process.kill()

    def test_daft(self):
        found = daft.from_arrow(self.pages.to_arrow().read_all()).to_pydict()
        self.assertEqual(list(zip(found["id"], found["text"])), DOCUMENTS)


class FieldsTest(unittest.TestCase):
    """Fields and filters, of a server of the test."""

    def setUp(self):
        self.requests = []
        self.server = self.enterContext(FakeServer(
            ListDocuments=self.list_documents, BatchRead=self.read_batch))
        self.server.description.update(document_count=4, size_bytes=8, fields=[
            {"name": "lang", "type": 1}, {"name": "year", "type": 2}, {"name": "seen", "type": 5}])
        self.archive = self.enterContext(quire.connect(self.server.address))["a"]

    def list_documents(self, request, _context):
        self.requests.append(request)
        values = {"lang": {"string_value": b"de"}, "year": {"integer_value": 0},
                  "seen": {"time_us": 1}}
        return {"is_filtered": request.HasField("filter"), "documents": [
            {"ordinal": number, "id": b"id-%d" % number,
             "range": {"offset": 2 * number, "size_bytes": 2},
             "fields": [values[name] if number else {} for name in request.fields]}
            for number in range(4) if not request.HasField("filter") or number % 3 == 0]}

    @staticmethod
    def read_batch(requests, _context):
        for request in requests:
            for item in request.items:
                number = item.document.ordinal
                data = b"t%d" % number
                yield {"results": [{
                    "tag": item.tag, "data": data, "encoding": messages.IDENTITY,
                    "range": {"offset": 2 * number, "size_bytes": 2},
                    "checksum": xxhash.xxh3_64_intdigest(data),
                    "document": {"ordinal": number, "id": b"id-%d" % number,
                                 "range": {"offset": 2 * number, "size_bytes": 2}}}]}

    def test_columns_of_fields(self):
        reader = self.archive.to_arrow(text=False)
        self.assertEqual(reader.schema.names, [*arrow.COLUMNS, "lang", "year", "seen"])
        found = reader.read_all()
        found.validate(full=True)
        self.assertEqual(found["lang"].to_pylist(), [None, "de", "de", "de"])
        self.assertEqual(found["year"].to_pylist(), [None, 0, 0, 0])
        self.assertEqual(found["seen"].type, pyarrow.timestamp("us", "UTC"))
        self.assertEqual(found["seen"].cast(pyarrow.int64()).to_pylist(), [None, 1, 1, 1])
        self.assertEqual(list(self.requests[-1].fields), ["lang", "year", "seen"])
        found = self.archive.to_arrow(["year", "id", "lang"], binary=("lang",)).read_all()
        self.assertEqual(found.column_names, ["year", "id", "lang"])
        self.assertEqual(found["lang"].to_pylist(), [None, b"de", b"de", b"de"])
        self.assertEqual(list(self.requests[-1].fields), ["year", "lang"])

    def test_a_filter(self):
        found = self.archive.to_arrow(["ordinal", "text", "lang"],
                                      filter='lang = "de"').read_all()
        self.assertEqual(self.requests[-1].filter, 'lang = "de"')
        self.assertEqual(found.to_pydict(), {"ordinal": [0, 3], "text": [b"t0", b"t3"],
                                             "lang": [None, "de"]})
        self.assertEqual(self.archive.to_arrow(["id"], filter="x").read_all().num_rows, 2)

    def test_a_field_called_text(self):
        self.server.description["fields"].append({"name": "text", "type": 1})
        with self.assertRaisesRegex(ValueError, "field called text"):
            self.archive.to_arrow()
        self.assertEqual(self.archive.to_arrow(["lang", "text"], prefix="").schema.names,
                         ["lang", "text"])


class BrokenStreamTest(unittest.TestCase):
    """A server that fails in the middle: no program takes what came before for all."""

    def serve(self, scan):
        texts = [b"document0", b"docum\0\0\0\0", bytes(9), bytes(9), b"", b"document5"]
        offsets = [sum(map(len, texts[:number])) for number in range(len(texts))]
        listed = [{"ordinal": number, "id": b"id-%d" % number,
                   "range": {"offset": offsets[number], "size_bytes": len(text)}}
                  for number, text in enumerate(texts)]

        def pieces(_request, context):
            whole = b"".join(texts)
            # The zeros begin with the second message.
            for begin, end in ((0, 14), (14, 36), (36, 45)):
                data = whole[begin:end]
                yield {"range": {"offset": begin, "size_bytes": len(data)}, "data": data,
                       "checksum": xxhash.xxh3_64_intdigest(data), "encoding": messages.IDENTITY}
                scan(context)

        def read(request, context):
            number = request.document.ordinal
            if number in (1, 2):
                fail(context, grpc.StatusCode.PERMISSION_DENIED, "DOCUMENT_WITHDRAWN")
            part = {"offset": offsets[number], "size_bytes": 0}
            return {"range": part, "document": listed[number], "encoding": messages.IDENTITY,
                    "checksum": xxhash.xxh3_64_intdigest(b"")}

        server = self.enterContext(FakeServer(
            Scan=pieces, Read=read, ListDocuments=lambda *_: {"documents": listed}))
        server.description.update(size_bytes=45, document_count=6)
        return self.enterContext(quire.connect(server.address, attempts_max=1))["a"]

    def test_documents_withdrawn_after_the_list_are_left_out(self):
        count = quire.WithdrawnCount()
        found = self.serve(lambda context: None).to_arrow(withdrawn=count).read_all()
        self.assertEqual(found.column("ordinal").to_pylist(), [0, 3, 4, 5])
        self.assertEqual(found.column("text").to_pylist(),
                         [b"document0", bytes(9), b"", b"document5"])
        self.assertEqual(count.count, 2)

    def test_an_error_ends_no_reader_early(self):
        archive = self.serve(lambda context: fail(
            context, grpc.StatusCode.PERMISSION_DENIED, "ACCESS_DENIED"))
        with self.assertRaises(quire.QuireError):
            archive.to_arrow().read_all()
        docs = archive.to_arrow()
        with duckdb.connect() as database, self.assertRaises(duckdb.Error):
            database.execute("select count(text) from docs").fetchone()
        del docs
        with self.assertRaises(Exception):
            polars.DataFrame(archive.to_arrow())


if __name__ == "__main__":
    unittest.main()
