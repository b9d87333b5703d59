#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a client in another language, generated from the protos alone, over a real
socket.

usage: python_client_test.py QUIRED
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import grpc
import xxhash
import zstandard
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer, error_of, make_documents, make_stubs, write_corpus

SEED = 20261121


def symbols_of(table):
    """Returns symbols by code, of a table in the published FSST library's format."""
    sizes = list(table[9:17])
    zero = table[8]
    sizes[0] -= zero
    symbols, at = [b"\0"] * zero, 17
    for size in (2, 3, 4, 5, 6, 7, 8, 1):
        for _ in range(sizes[size - 1]):
            symbols.append(table[at:at + size])
            at += size
    return symbols


def decode_fsst(data, symbols):
    text, codes = [], iter(data)
    for code in codes:
        text.append(bytes([next(codes)]) if code == 255 else symbols[code])
    return b"".join(text)


def decode_zstd(data, size, dictionary):
    """Decodes a block of codecs zstd and rlz."""
    as_text = zstandard.ZstdCompressionDict(
        dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if dictionary else None
    return zstandard.ZstdDecompressor(dict_data=as_text).decompress(data, max_output_size=size)


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.documents = make_documents(300, SEED)
        cls.text = b"".join(data for _, data in cls.documents)
        write_corpus(cls.documents, f"{directory}/pages")
        subprocess.run([QUIRED, "build", "-o", f"{directory}/pages.quire", "--dictionary-size", "256KiB",
                        f"{directory}/pages.tar"], check=True)
        subprocess.run([QUIRED, "build", "-o", f"{directory}/plain.quire", "--codec", "zstd",
                        f"{directory}/pages.tar"], check=True)
        cls.directory = directory
        cls.stubs = make_stubs(directory)
        cls.server = cls.enterClassContext(
            LiveServer(QUIRED, [f"pages={directory}/pages.quire", f"plain={directory}/plain.quire"]))
        cls.channel = cls.enterClassContext(cls.server.channel())
        cls.archive = cls.stubs.rpc.ArchiveStub(cls.channel)

    def read(self, **target):
        pb = self.stubs.pb
        response = self.archive.Read(pb.ReadRequest(
            archive="pages", accepted_encodings=[pb.WIRE_ENCODING_IDENTITY], **target))
        self.assertEqual(response.encoding, pb.WIRE_ENCODING_IDENTITY)
        self.assertEqual(response.checksum, xxhash.xxh3_64_intdigest(response.data))
        return response

    def test_the_package_is_quire_v1(self):
        """`proto` belongs to proto-plus, which many Google clients include."""
        self.assertEqual(self.stubs.pb.__name__, "quire.v1.archive_pb2")
        self.assertFalse(os.path.exists(f"{self.directory}/proto"))

    def test_ids_are_base64_in_json(self):
        name, data = self.documents[3]
        request = json_format.Parse(json.dumps({"archive": "pages", "document": {
            "id": base64.b64encode(name.encode()).decode()}}), self.stubs.pb.ReadRequest())
        self.assertEqual(self.archive.Read(request).data, data)

    def test_describes_the_archive(self):
        listing = self.archive.ListArchives(self.stubs.pb.ListArchivesRequest())
        self.assertEqual([a.name for a in listing.archives], ["pages", "plain"])
        archive = self.archive.GetArchive(
            self.stubs.pb.GetArchiveRequest(archive="pages")).archive
        self.assertEqual(archive.document_count, len(self.documents))
        self.assertEqual(archive.size_bytes, len(self.text))
        self.assertEqual(archive, listing.archives[0])

    def test_reads_documents_by_id_and_by_ordinal(self):
        pb = self.stubs.pb
        for ordinal in (0, 1, 150, len(self.documents) - 1):
            name, data = self.documents[ordinal]
            by_id = self.read(document=pb.DocumentName(id=name.encode()))
            self.assertEqual(by_id.data, data)
            self.assertEqual(by_id.document.ordinal, ordinal)
            by_ordinal = self.read(document=pb.DocumentName(ordinal=ordinal))
            self.assertEqual(by_ordinal, by_id)

    def test_reads_ranges_across_blocks(self):
        for offset, size in ((0, 1), (65_535, 2), (65_537, 200_001), (len(self.text), 0),
                             (len(self.text) - 1, 1)):
            response = self.read(
                range=self.stubs.pb.ByteRange(offset=offset, size_bytes=size))
            self.assertEqual(response.data, self.text[offset:offset + size])

    def test_batch_answers_each_item_once(self):
        pb = self.stubs.pb
        items = [pb.BatchItem(tag=i, document=pb.DocumentName(id=name.encode()))
                 for i, (name, _) in enumerate(self.documents)]
        items.append(pb.BatchItem(tag=len(items), document=pb.DocumentName(id=b"none")))
        answers = {}
        for response in self.archive.BatchRead(iter(
                [pb.BatchReadRequest(archive="pages", items=items)])):
            for result in response.results:
                self.assertNotIn(result.tag, answers)
                answers[result.tag] = result
        self.assertEqual(len(answers), len(items))
        missing = answers.pop(len(self.documents))
        self.assertEqual(missing.status.code, grpc.StatusCode.NOT_FOUND.value[0])
        self.assertEqual(missing.status.reason, pb.DOCUMENT_NOT_FOUND)
        for tag, result in answers.items():
            self.assertFalse(result.HasField("status"))
            self.assertEqual(result.data, self.documents[tag][1])

    def test_scan_gives_everything_and_resumes(self):
        pb = self.stubs.pb
        pieces = list(self.archive.Scan(pb.ScanRequest(archive="pages")))
        self.assertEqual(b"".join(p.data for p in pieces), self.text)
        rest = self.archive.Scan(pb.ScanRequest(
            archive="pages", resume_token=pieces[0].resume_token))
        self.assertEqual(b"".join(p.data for p in rest), self.text[len(pieces[0].data):])

    def decode_encoded(self, archive, response):
        """Returns the text of an answer in any encoding, with the tables that `archive` names."""
        pb, details = self.stubs.pb, response.details
        self.assertEqual(response.checksum, xxhash.xxh3_64_intdigest(response.data))
        if response.encoding == pb.WIRE_ENCODING_IDENTITY:
            return response.data
        if response.encoding == pb.WIRE_ENCODING_FSST:
            answer = self.archive.GetSymbolTable(
                pb.GetSymbolTableRequest(hash=archive.symbol_table_hash))
            self.assertEqual(f"{details.table_hash:016x}", archive.symbol_table_hash)
            self.assertEqual(xxhash.xxh3_64_intdigest(answer.table), details.table_hash)
            text = decode_fsst(response.data, symbols_of(answer.table))
        else:
            dictionary = b"".join(chunk.data for chunk in self.archive.GetDictionary(
                pb.GetDictionaryRequest(hash=archive.dictionary_hash))) \
                if archive.HasField("dictionary_hash") else b""
            text, at = b"", 0
            for block in details.blocks:
                stored = response.data[at:at + block.stored_size_bytes]
                at += block.stored_size_bytes
                text += stored if block.is_uncoded else decode_zstd(
                    stored, block.size_bytes, dictionary)
            self.assertEqual(at, len(response.data))
        return text[details.front_cut_size_bytes:len(text) - details.back_cut_size_bytes]

    def test_decodes_fsst_and_stored_blocks(self):
        pb = self.stubs.pb
        for name in ("pages", "plain"):
            archive = self.archive.GetArchive(pb.GetArchiveRequest(archive=name)).archive
            for encoding in (pb.WIRE_ENCODING_FSST, pb.WIRE_ENCODING_STORED):
                for offset, size in ((0, 1), (7, 500), (65_530, 20), (99, 300_000)):
                    with self.subTest(name=name, encoding=encoding, offset=offset):
                        response = self.archive.Read(pb.ReadRequest(
                            archive=name, accepted_encodings=[encoding],
                            range=pb.ByteRange(offset=offset, size_bytes=size)))
                        if size > 100:
                            self.assertEqual(response.encoding, encoding)
                            self.assertLess(len(response.data), 65536 + size)
                        self.assertEqual(self.decode_encoded(archive, response),
                                         self.text[offset:offset + size])

    def test_lists_documents_by_prefix_in_pages(self):
        pb = self.stubs.pb
        names, token = [], None
        while True:
            page = self.archive.ListDocuments(pb.ListDocumentsRequest(
                archive="pages", prefix=b"site-3/", page_size=7, page_token=token))
            self.assertLessEqual(len(page.documents), 7)
            names += [d.id.decode() for d in page.documents]
            if not page.HasField("next_page_token"):
                break
            token = page.next_page_token
        self.assertEqual(names, [n for n, _ in self.documents if n.startswith("site-3/")])

    def test_errors_have_code_and_reason(self):
        pb = self.stubs.pb
        with self.assertRaises(grpc.RpcError) as caught:
            self.read(document=pb.DocumentName(id=b"none"))
        code, reason, _, _ = error_of(self.stubs, caught.exception)
        self.assertEqual((code, reason), (grpc.StatusCode.NOT_FOUND, "DOCUMENT_NOT_FOUND"))

    def test_health_is_told_for_each_archive(self):
        self.assertEqual(self.server.check_health(self.stubs, ""), 1)
        self.assertEqual(self.server.check_health(self.stubs, "quire.v1.Archive"), 1)
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.check_health(self.stubs, "nobody")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def reflect(self, **request):
        standard = self.stubs.standard
        call = self.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=standard.ReflectionRequest.SerializeToString,
            response_deserializer=standard.ReflectionResponse.FromString)
        (response,) = call(iter([standard.ReflectionRequest(**request)]))
        self.assertFalse(response.HasField("error_response"), response)
        return response

    def test_reflection_lists_the_services(self):
        services = self.reflect(list_services="").list_services_response.service
        self.assertLessEqual(
            {"quire.v1.Archive", "grpc.health.v1.Health",
             "grpc.reflection.v1alpha.ServerReflection"}, {s.name for s in services})

    def test_reflection_describes_all_that_it_lists(self):
        services = [service.name for service in
                    self.reflect(list_services="").list_services_response.service]
        # And the details of errors: tools look up the names in their type_urls.
        for symbol in [*services, "google.rpc.ErrorInfo", "google.rpc.RetryInfo",
                       "google.rpc.BadRequest", "google.rpc.Status"]:
            with self.subTest(symbol):
                self.assertTrue(self.reflect(file_containing_symbol=symbol)
                                .file_descriptor_response.file_descriptor_proto)

    def test_reads_with_nothing_but_reflection(self):
        """Like grpcurl: types from the server, without protos."""
        pool = descriptor_pool.DescriptorPool()
        waiting = list(self.reflect(file_containing_symbol="quire.v1.Archive")
                       .file_descriptor_response.file_descriptor_proto)
        files = {}
        while waiting:
            file = descriptor_pb2.FileDescriptorProto.FromString(waiting.pop())
            if file.name not in files:
                files[file.name] = file
                for needed in file.dependency:
                    waiting += (self.reflect(file_by_filename=needed)
                                .file_descriptor_response.file_descriptor_proto)

        def add(name):
            for needed in files[name].dependency:
                add(needed)
            pool.Add(files[name])

        for name in files:
            add(name)
        method = pool.FindServiceByName("quire.v1.Archive").methods_by_name["Read"]
        factory = message_factory.MessageFactory(pool)
        request = factory.GetPrototype(method.input_type)(archive="pages")
        request.document.ordinal = 7
        call = self.channel.unary_unary(
            "/quire.v1.Archive/Read",
            request_serializer=type(request).SerializeToString,
            response_deserializer=factory.GetPrototype(method.output_type).FromString)
        self.assertEqual(call(request).data, self.documents[7][1])


if __name__ == "__main__":
    QUIRED = sys.argv.pop(1)
    unittest.main(verbosity=2)
