# SPDX-License-Identifier: Apache-2.0
"""Messages of a batch that are read as columns: only those whose results are all plain."""
import random
import unittest

import xxhash

from package_harness import SEED
from quire_archive import _messages as messages
from quire_archive._batch import OrdinalBatch
from quire_archive._core import Decoding
from quire_archive.errors import QuireError, ServerFault
from quire_archive.records import WITHDRAWN_TYPE

# Of answers as they are.
DECODING = Decoding(None, False)
# Ordinal and size of each document.
DOCUMENTS = [(7, 300), (1, 2), (2**40, 1), (300, 5000), (5, 20)]


def contents(ordinal, size):
    return random.Random(SEED + ordinal).randbytes(size)


def make_message():
    """Results in another order than that of the tags 1, 2, ..."""
    message = messages.BatchReadResponse()
    for tag in (3, 1, 2, 5, 4):
        ordinal, size = DOCUMENTS[tag - 1]
        data = contents(ordinal, size)
        span = {"offset": 10_000 * tag, "size_bytes": size}
        message.results.add(
            tag=tag, range=span, encoding=messages.IDENTITY, data=data,
            checksum=xxhash.xxh3_64_intdigest(data),
            document={"ordinal": ordinal, "id": b"page", "range": span, "media_type": "text/html"})
    return message


def make_batch():
    batch = OrdinalBatch(None, None, 100)
    batch._pending = {tag: ordinal for tag, (ordinal, _) in enumerate(DOCUMENTS, 1)}
    return batch


def take(message):
    """(documents, errors, pending ordinals)."""
    batch = make_batch()
    (step,) = batch._take(message.SerializeToString(), DECODING)
    (found,) = step.values
    return (*found, set(batch._pending.values()))


# By what they break: changes of the third result.
CHANGES = {
    "status": lambda result: setattr(result.status, "code", 5),
    "no data": lambda result: result.ClearField("data"),
    "other data": lambda result: setattr(result, "data", b"xx"),
    "other size": lambda result: setattr(result, "data", b"x"),
    "checksum": lambda result: setattr(result, "checksum", result.checksum ^ 1),
    "no checksum": lambda result: result.ClearField("checksum"),
    "offset": lambda result: setattr(result.range, "offset", 5),
    "offset 0": lambda result: setattr(result.range, "offset", 0),
    "size": lambda result: setattr(result.range, "size_bytes", 3),
    "no range": lambda result: result.ClearField("range"),
    "encoding": lambda result: setattr(result, "encoding", messages.STORED),
    "no document": lambda result: result.ClearField("document"),
    "other document": lambda result: setattr(result.document, "ordinal", 5),
    "document 0": lambda result: setattr(result.document, "ordinal", 0),
    "withdrawn": lambda result: setattr(result.document, "record_type", WITHDRAWN_TYPE),
    "unknown tag": lambda result: setattr(result, "tag", 77),
    "tag twice": lambda result: setattr(result, "tag", 3),
    "tag 0": lambda result: setattr(result, "tag", 0)}


class MergedResultsTest(unittest.TestCase):
    def test_takes_plain_documents(self):
        expected = {ordinal: contents(ordinal, size) for ordinal, size in DOCUMENTS}
        batch = make_batch()
        self.assertEqual(batch._take_merged(make_message().SerializeToString()), expected)
        self.assertFalse(batch._pending)
        self.assertEqual(take(make_message()), (expected, {}, set()))
        message = make_message()
        message.results[2].document.record_type = "response"
        self.assertEqual(take(message), (expected, {}, set()))
        # Part of them.
        del message.results[3:]
        self.assertEqual(take(message)[2], {300, 5})
        self.assertEqual(take(messages.BatchReadResponse()), ({}, {}, set(map(
            lambda document: document[0], DOCUMENTS))))

    def test_takes_nothing_of_others(self):
        for name, change in CHANGES.items():
            with self.subTest(change=name):
                message = make_message()
                change(message.results[2])
                batch = make_batch()
                before = dict(batch._pending)
                self.assertIsNone(batch._take_merged(message.SerializeToString()))
                self.assertEqual(batch._pending, before)

    def test_takes_others_one_by_one(self):
        for name in ("status", "withdrawn", "checksum", "offset", "no data", "document 0"):
            with self.subTest(change=name):
                message = make_message()
                CHANGES[name](message.results[2])
                documents, errors, pending = take(message)
                self.assertEqual(set(documents), {7, 2**40, 300, 5})
                self.assertIsInstance(errors[1], QuireError)
                self.assertEqual((len(errors), pending), (1, set()))
        message = make_message()
        message.results[2].tag = 77
        with self.assertRaises(ServerFault):
            take(message)

    def test_what_came_before_a_fault_is_emitted(self):
        message = make_message()
        message.results[2].tag = 77
        batch = make_batch()
        steps = batch._take(message.SerializeToString(), DECODING)
        (found,) = next(steps).values
        self.assertEqual(set(found[0]), {2**40, 7})
        with self.assertRaises(ServerFault):
            next(steps)

    def test_malformed_messages(self):
        for data in (b"\x0a", b"\x0a\x05\x3a\x04xx", b"\xff" * 20):
            with self.assertRaisesRegex(ServerFault, "malformed"):
                list(make_batch()._take(data, DECODING))


if __name__ == "__main__":
    unittest.main()
