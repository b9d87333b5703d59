# SPDX-License-Identifier: Apache-2.0
"""What tests of servers that fail share: answers, and a client that repeats calls soon."""
import unittest

import grpc
import xxhash

import quire_archive as quire
from package_harness import FakeServer, fail
from quire_archive import _messages as messages

CODE = grpc.StatusCode
DATA = b"some text"


def answer(data=DATA, ordinal=0, offset=100, **changes):
    """A correct answer to the whole document of this ordinal."""
    return {"range": {"offset": offset, "size_bytes": len(data)},
            "document": {"ordinal": ordinal, "id": b"id-%d" % ordinal,
                         "range": {"offset": offset, "size_bytes": len(data)}},
            "encoding": messages.IDENTITY, "checksum": xxhash.xxh3_64_intdigest(data),
            "data": data, **changes}


def result(tag, **changes):
    """The same as an answer of a batch, to the ordinal `tag`."""
    return {"tag": tag, **answer(DATA + b"%d" % tag, tag, 100 * tag, **changes)}


def failing(count, code, reason="", retry_seconds=None, then=None):
    """A handler that fails `count` times."""
    left = [count]

    def handle(_request, context):
        if left[0]:
            left[0] -= 1
            fail(context, code, reason, retry_seconds)
        return then if then is not None else answer()
    return handle


class FaultyCase(unittest.TestCase):
    def serve(self, **handlers):
        server = self.enterContext(FakeServer(**handlers))
        server.client = self.connect(server.address)
        return server

    def connect(self, address, **options):
        return self.enterContext(quire.connect(
            address, **{"retry_backoff": 0.01, "deadline": 20.0, **options}))
