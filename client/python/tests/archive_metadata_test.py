# SPDX-License-Identifier: Apache-2.0
"""The metadata by which proxies route calls: quire-archive, in each call for an archive."""
import asyncio
import unittest

import grpc
import xxhash

import quire_archive as quire
from package_harness import FakeServer, fail
from quire_archive import _messages as messages
from quire_archive import _options

DATA = b"some text"
DICTIONARY = b"words of a dictionary"
DICTIONARY_HASH = xxhash.xxh3_64_intdigest(DICTIONARY)
# Ordinal of a document that does not fit in one message.
LARGE = 7


def answer(offset=100, **changes):
    return {"range": {"offset": offset, "size_bytes": len(DATA)}, "encoding": messages.IDENTITY,
            "checksum": xxhash.xxh3_64_intdigest(DATA), "data": DATA, **changes}


def document(ordinal):
    return {"ordinal": ordinal, "id": b"id-%d" % ordinal,
            "range": {"offset": 100, "size_bytes": len(DATA)}}


def read(request, context):
    if request.document.ordinal == LARGE:
        fail(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
    if list(request.accepted_encodings) == [messages.STORED]:
        block = {"stored_size_bytes": 9, "size_bytes": 9, "is_uncoded": True}
        return answer(document=document(0), encoding=messages.STORED, details={
            "codec": "rlz", "table_hash": DICTIONARY_HASH, "blocks": [block]})
    if request.HasField("range"):
        return answer(request.range.offset)
    return answer(document=document(request.document.ordinal))


def read_stream(request, _context):
    yield answer(document=document(request.document.ordinal))


def read_batch(requests, _context):
    for request in requests:
        yield {"results": [{"tag": item.tag, **answer(document=document(item.document.ordinal))}
                           for item in request.items]}


def scan(request, _context):
    yield answer(request.offset)


def list_documents(request, _context):
    if request.page_token:
        return {"documents": [document(1)]}
    return {"documents": [document(0)], "next_page_token": "more"}


def get_dictionary(_request, _context):
    yield {"offset": 0, "size_bytes": len(DICTIONARY), "data": DICTIONARY,
           "checksum": DICTIONARY_HASH}


class ArchiveMetadataTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(FakeServer(
            Read=read, ReadStream=read_stream, BatchRead=read_batch, Scan=scan,
            ListDocuments=list_documents, GetDictionary=get_dictionary))
        self.server.description.update(
            codec="rlz", dictionary_hash=f"{DICTIONARY_HASH:016x}",
            dictionary_size_bytes=len(DICTIONARY))

    # Requests of a client, and the calls that they make.
    STEPS = [
        (lambda archive: archive.client.archives(), [("ListArchives",)]),
        (lambda archive: archive.info(), [("GetArchive", "a")]),
        (lambda archive: archive.read(3), [("Read", "a")]),
        (lambda archive: archive.read_range(100, 9), [("Read", "a")]),
        (lambda archive: archive.read(LARGE), [("Read", "a"), ("ReadStream", "a")]),
        (lambda archive: archive.get_many([1, 2]), [("BatchRead", "a")]),
        (lambda archive: archive.documents(), [("ListDocuments", "a")] * 2),
        (lambda archive: archive.stream_range(0, 9), [("GetArchive", "a"), ("Scan", "a")])]

    def check(self, perform, close):
        """`perform(request, **options)` carries out a request of a new or the same client."""
        calls = self.server.archives_of_calls
        for request, expected in self.STEPS:
            perform(request)
            self.assertEqual(calls, expected)
            calls.clear()
        # Limits are asked of the archive's server.
        for request, expected in (self.STEPS[3], self.STEPS[5]):
            close()
            perform(request)
            self.assertEqual(calls, [("ListArchives", "a"), *expected])
            calls.clear()
        close()
        perform(lambda archive: archive.read(0), encoding="stored")
        self.assertEqual(calls, [("GetArchive", "a"), ("Read", "a"), ("GetDictionary", "a")])

    def test_blocking(self):
        clients = []

        def perform(request, **options):
            if not clients:
                clients.append(quire.connect(self.server.address,
                                             **{"encoding": "identity", **options}))
            result = request(clients[0]["a"])
            if hasattr(result, "__next__"):
                list(result)

        def close():
            clients.pop().close()
        self.check(perform, close)
        close()

    def test_asyncio(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        clients = []

        async def run(request):
            result = request(clients[0]["a"])
            if hasattr(result, "__aiter__"):
                async for _ in result:
                    pass
            else:
                await result

        def perform(request, **options):
            if not clients:
                clients.append(quire.connect_async(self.server.address,
                                                   **{"encoding": "identity", **options}))
            loop.run_until_complete(run(request))

        def close():
            loop.run_until_complete(clients.pop().close())
        self.check(perform, close)
        close()

    def test_a_name_that_no_archive_has_is_left_out(self):
        with quire.connect(self.server.address) as client:
            for name in ("", "a b", "a\nb: c", "d\u00f6", "a/b", "a" * 129):
                client[name].info()
                self.assertEqual(self.server.archives_of_calls.pop(), ("GetArchive",), name)
            for name in ("a" * 128, "A-b_c.9"):
                client[name].info()
                self.assertEqual(self.server.archives_of_calls.pop(), ("GetArchive", name))

    def test_metadata_of_a_token_stays(self):
        token = [("authorization", "Bearer x")]
        self.assertEqual(_options.with_route(token, "a"), [*token, ("quire-archive", "a")])
        self.assertEqual(_options.with_route(token, ""), token)
        self.assertEqual(_options.with_route(token, "", 2), [*token, ("quire-attempt", "2")])
        self.assertEqual(token, [("authorization", "Bearer x")])
        self.assertIsNone(_options.with_route(None, ""))


if __name__ == "__main__":
    unittest.main()
