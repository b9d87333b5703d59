# SPDX-License-Identifier: Apache-2.0
"""What the clients make of scans and lists that fail, or lie."""
import asyncio
import unittest

import xxhash

import quire_archive as quire
from faulty_case import CODE, DATA, FaultyCase, answer, failing, result
from package_harness import fail
from quire_archive import _messages as messages


class ScanFaultsTest(FaultyCase):
    def test_a_scan_delivers_what_came_before_an_error(self):
        block = {"stored_size_bytes": 9, "size_bytes": 9, "is_uncoded": True}

        def scan(request, context):
            for number in range(5):
                if number == 3 and not breaks_checksum:
                    fail(context, CODE.DATA_LOSS, "BLOCK_DAMAGED")
                data = b"piece %3d" % number
                yield {"range": {"offset": request.offset + 9 * number, "size_bytes": 9},
                       "encoding": messages.STORED, "data": data,
                       "checksum": 0 if number == 3 else xxhash.xxh3_64_intdigest(data),
                       "details": {"codec": "zlib", "blocks": [block]}}

        server = self.serve(Scan=scan)
        server.description["codec"] = "zlib"
        for breaks_checksum, kind in ((False, quire.BlockDamaged), (True, quire.AnswerDamaged)):
            found = []
            with self.assertRaises(kind):
                for piece in self.connect(server.address, encoding="stored")["a"].stream_range(
                        0, 45):
                    found.append(piece)
            self.assertEqual(found, [b"piece %3d" % number for number in range(3)])

            async def read_all(found):
                async with quire.connect_async(server.address, encoding="stored") as client:
                    async for piece in client["a"].stream_range(0, 45):
                        found.append(piece)

            again = []
            with self.assertRaises(kind):
                asyncio.run(read_all(again))
            self.assertEqual(again, found)

    def test_a_scan_resumes(self):
        offsets = []

        def scan(request, context):
            offsets.append(request.offset)
            self.assertEqual((request.archive_uuid, request.offset + request.size_bytes),
                             ("u", 1000))
            data = b"%03d" % request.offset * 100
            yield {"range": {"offset": request.offset, "size_bytes": 250},
                   "encoding": messages.IDENTITY, "data": data[:250],
                   "checksum": xxhash.xxh3_64_intdigest(data[:250])}
            if request.offset < 750:
                fail(context, CODE.UNAVAILABLE)

        server = self.serve(Scan=scan)
        found = b"".join(server.client["a"].stream_range())
        self.assertEqual(found, b"".join((b"%03d" % at * 100)[:250] for at in offsets))
        self.assertEqual(offsets, [0, 250, 500, 750])

    def test_a_dictionary_that_is_withheld(self):
        # Documents were withdrawn after the answer in stored blocks: it is asked for again.
        block = {"stored_size_bytes": 9, "size_bytes": 9}
        stored = {"encoding": messages.STORED,
                  "details": {"codec": "rlz", "table_hash": 7, "blocks": [block]}}

        def read(request, _context):
            return answer(**(stored if request.accepted_encodings else {}))

        def batch(requests, _context):
            encodings = None
            for request in requests:
                encodings = list(request.accepted_encodings) if encodings is None else encodings
                for item in request.items:
                    yield {"results": [result(item.tag, **(stored if encodings else {}))]}

        def scan(request, _context):
            yield {"range": {"offset": 0, "size_bytes": 9}, "data": DATA,
                   "checksum": xxhash.xxh3_64_intdigest(DATA), "encoding": messages.IDENTITY,
                   **(stored if request.accepted_encodings else {})}

        server = self.serve(Read=read, BatchRead=batch, Scan=scan, ReadStream=(
            lambda request, context: iter([read(request, context)])), GetDictionary=failing(
                99, CODE.PERMISSION_DENIED, "DOCUMENT_WITHDRAWN"))
        server.description["codec"] = "rlz"
        archive = self.connect(server.address, encoding="stored")["a"]
        self.assertEqual(archive.read(0), DATA)
        self.assertEqual(b"".join(archive.stream_range(0, 9)), DATA)
        self.assertEqual([found.data for found in archive.get_many(range(2))],
                         [DATA + b"%d" % number for number in range(2)])
        self.assertEqual(server.calls.count("GetDictionary"), 3)

    def test_a_scan_leaves_out_what_is_withdrawn_after_it_was_listed(self):
        texts = [b"document0", b"docum\0\0\0\0", bytes(9), bytes(9), b"", b"document5"]
        offsets = [sum(map(len, texts[:number])) for number in range(len(texts))]
        listed = [{"ordinal": number, "id": b"id-%d" % number,
                   "range": {"offset": offsets[number], "size_bytes": len(text)}}
                  for number, text in enumerate(texts)]
        withdrawn = {1: (CODE.PERMISSION_DENIED, "DOCUMENT_WITHDRAWN"),
                     2: (CODE.NOT_FOUND, "DOCUMENT_NOT_FOUND")}

        def scan(_request, _context):
            whole = b"".join(texts)
            # The zeros begin with the second message.
            for begin, end in ((0, 14), (14, 36), (36, 45)):
                data = whole[begin:end]
                yield {"range": {"offset": begin, "size_bytes": len(data)}, "data": data,
                       "checksum": xxhash.xxh3_64_intdigest(data), "encoding": messages.IDENTITY}

        def read(request, context):
            number = request.document.ordinal
            self.assertEqual(request.archive_uuid, "u")
            asked.append(number)
            if number in withdrawn:
                fail(context, *withdrawn[number])
            part = {"offset": offsets[number], "size_bytes": 0}
            return {**answer(b"", number), "range": part, "document": listed[number]}

        server = self.serve(Scan=scan, Read=read,
                            ListDocuments=lambda *_: {"documents": listed})
        server.description.update(size_bytes=45, document_count=6)
        left = [(b"id-%d" % number, texts[number]) for number in (0, 3, 4, 5)]
        asked = []
        self.assertEqual(self.scan_all(server), (left, 2))
        self.assertEqual(asked, [1, 2, 3] * 2)

    def scan_all(self, server):
        """What both clients read, and how much they counted as withdrawn."""
        scan = server.client["a"].scan()
        found = [(document.id, data) for document, data in scan], scan.withdrawn_count

        async def again():
            async with quire.connect_async(server.address) as client:
                scan = client["a"].scan()
                return ([(document.id, data) async for document, data in scan],
                        scan.withdrawn_count)
        self.assertEqual(asyncio.run(again()), found)
        return found

    def test_a_scan_counts_what_is_not_listed(self):
        # 0, 2, 3 and 7 are not listed, 5 was removed for good.
        def document(number):
            gone = {"id": b"", "record_type": "withdrawn"} if number == 5 else {}
            return {"ordinal": number, "id": b"id-%d" % number,
                    "range": {"offset": 9 * number, "size_bytes": 9}, **gone}

        def scan(request, _context):
            data = (b"document0" * 8)[request.offset:]
            yield {"range": {"offset": request.offset, "size_bytes": len(data)}, "data": data,
                   "checksum": xxhash.xxh3_64_intdigest(data), "encoding": messages.IDENTITY}

        def read(request, context):
            asked.append(request.document.ordinal)
            if not is_lying:
                fail(context, CODE.PERMISSION_DENIED, "DOCUMENT_WITHDRAWN")
            return {**answer(b"", 7), "range": {"offset": 63, "size_bytes": 0},
                    "document": document(7)}

        server = self.serve(Scan=scan, Read=read, ListDocuments=lambda *_: {
            "documents": [document(number) for number in (1, 4, 5, 6)]})
        server.description.update(size_bytes=72, document_count=8)
        asked, is_lying = [], False
        self.assertEqual(self.scan_all(server), (
            [(b"id-%d" % number, b"document0") for number in (1, 4, 6)], 5))
        self.assertEqual(asked, [7, 7])
        self.assertEqual([found.ordinal for found in server.client["a"]], [1, 4, 6])
        # A list that ends early has not withdrawn the rest.
        is_lying = True
        with self.assertRaisesRegex(quire.ServerFault, "did not list document 7 of a, which can"):
            list(server.client["a"].scan())

    def test_what_was_removed_for_good_is_not_read_as_zeros(self):
        def removed(number, **changes):
            found = answer(bytes(9), number, **changes)
            found["document"].update(id=b"", record_type="withdrawn")
            return found

        def batch(requests, _context):
            for request in requests:
                yield {"results": [{"tag": item.tag, **removed(item.document.ordinal)}
                                   for item in request.items]}

        server = self.serve(Read=lambda *_: removed(3), BatchRead=batch)
        archive = server.client["a"]
        for call in (lambda: archive.read(3), lambda: archive.document(3), lambda: archive[3]):
            with self.assertRaises(quire.DocumentWithdrawn) as caught:
                call()
            self.assertEqual(caught.exception.reason, "DOCUMENT_WITHDRAWN")
        self.assertNotIn(3, archive)
        (found,) = archive.get_many([3])
        self.assertIsInstance(found.error, quire.DocumentWithdrawn)

    def test_a_state_before_documents_were_removed(self):
        server = self.serve()
        server.description["redacted_states"] = [
            {"uuid": "before", "size_bytes": 7, "document_count": 3}]
        info = server.client.archive("a", "before").info()
        self.assertEqual((info.uuid, info.size, info.document_count), ("before", 7, 3))

    def test_a_scan_that_lies(self):
        def piece(**changes):
            return {"range": {"offset": 0, "size_bytes": 9}, "encoding": messages.IDENTITY,
                    "data": DATA, "checksum": xxhash.xxh3_64_intdigest(DATA), **changes}
        for bad, kind in [([], quire.AnswerDamaged), ([piece()], quire.AnswerDamaged),
                          ([piece(checksum=3)], quire.AnswerDamaged),
                          ([piece(), piece()], quire.ServerFault),
                          ([piece(range={"offset": 0, "size_bytes": 1001})], quire.ServerFault)]:
            server = self.serve(Scan=lambda *_, bad=bad: iter(bad))
            with self.assertRaises(kind):
                list(server.client["a"].stream_range())

    def test_listings_that_lie(self):
        def document(ordinal):
            return answer(ordinal=ordinal)["document"]
        for page in ({"next_page_token": "x"}, {"documents": [document(0), document(0)]},
                     {"documents": [document(2), document(1)]}):
            server = self.serve(ListDocuments=lambda *_, page=page: page)
            with self.assertRaises(quire.ServerFault):
                list(server.client["a"])
        server = self.serve(ListDocuments=lambda *_: {"documents": [document(1)]})
        with self.assertRaises(quire.ServerFault):
            list(server.client["a"].documents(first_ordinal=2))
        # Document 0 is withdrawn.
        self.assertEqual([found.ordinal for found in server.client["a"]], [1])
        server = self.serve(ListDocuments=lambda *_: {"documents": [document(1)]})
        with self.assertRaises(quire.ServerFault):
            list(server.client["a"].documents("other"))


if __name__ == "__main__":
    unittest.main()
