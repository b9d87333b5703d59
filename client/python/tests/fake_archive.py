# SPDX-License-Identifier: Apache-2.0
"""Handlers of a FakeServer with an archive of short documents, for tests of how calls are made."""
import grpc
import xxhash

from package_harness import fail
from quire_archive import _messages as messages

CODE = grpc.StatusCode
DATA = b"some text"
DICTIONARY = b"words of a dictionary"
DICTIONARY_HASH = xxhash.xxh3_64_intdigest(DICTIONARY)
# Ordinals of a document that does not fit in one message, and of one that a batch refuses.
LARGE, BUSY = 7, 8


def answer(offset=100, **changes):
    return {"range": {"offset": offset, "size_bytes": len(DATA)}, "encoding": messages.IDENTITY,
            "checksum": xxhash.xxh3_64_intdigest(DATA), "data": DATA, **changes}


def document(ordinal):
    return {"ordinal": ordinal, "id": b"id-%d" % ordinal,
            "range": {"offset": 100, "size_bytes": len(DATA)}}


def read(request, context):
    if request.document.ordinal == LARGE:
        fail(context, CODE.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
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
        for item in request.items:
            reply = answer(document=document(item.document.ordinal))
            if item.document.ordinal == BUSY:
                reply = {"status": {"code": CODE.RESOURCE_EXHAUSTED.value[0],
                                    "reason": messages.ERROR_REASONS["SERVER_BUSY"]}}
            yield {"results": [{"tag": item.tag, **reply}]}


def scan(request, _context):
    yield answer(request.offset)


def list_documents(request, _context):
    if request.page_token:
        return {"documents": [document(1)]}
    return {"documents": [document(0)], "next_page_token": "more"}


def get_dictionary(_request, _context):
    yield {"offset": 0, "size_bytes": len(DICTIONARY), "data": DICTIONARY,
           "checksum": DICTIONARY_HASH}


HANDLERS = {"Read": read, "ReadStream": read_stream, "BatchRead": read_batch, "Scan": scan,
            "ListDocuments": list_documents, "GetDictionary": get_dictionary}
# Of the server's description, for answers in the encoding "stored".
DESCRIPTION = {"codec": "rlz", "dictionary_hash": f"{DICTIONARY_HASH:016x}",
               "dictionary_size_bytes": len(DICTIONARY)}
