# SPDX-License-Identifier: Apache-2.0
"""Messages of quire.v1, in a descriptor pool of their own.

The package has the protos as descriptors, not as generated code: any protobuf
runtime from 3.20 on loads them. The private pool keeps them apart from other
users of the same protos in this process.
"""
from __future__ import annotations

import pkgutil
from typing import Any, Dict, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "quire.v1"
_DESCRIPTORS = "descriptors.binpb"


def _load() -> Any:
    data = pkgutil.get_data(__package__, _DESCRIPTORS)
    assert data is not None
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_pool = _load()


def _message(name: str) -> Any:
    descriptor = _pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    # protobuf before 4.22.
    return message_factory.MessageFactory(_pool).GetPrototype(descriptor)


def _enum(name: str) -> Dict[str, int]:
    values = _pool.FindEnumTypeByName(f"{_PACKAGE}.{name}").values
    return {value.name: value.number for value in values}


BatchReadRequest = _message("BatchReadRequest")
GetArchiveRequest = _message("GetArchiveRequest")
GetDictionaryRequest = _message("GetDictionaryRequest")
ListArchivesRequest = _message("ListArchivesRequest")
ListDocumentsRequest = _message("ListDocumentsRequest")
ReadRequest = _message("ReadRequest")
ScanRequest = _message("ScanRequest")
RpcErrorInfo = _message("RpcErrorInfo")
RpcRetryInfo = _message("RpcRetryInfo")
RpcStatus = _message("RpcStatus")

ERROR_REASONS = _enum("ErrorReason")
REASON_NAMES = {number: name for name, number in ERROR_REASONS.items()}
_ENCODINGS = _enum("WireEncoding")
IDENTITY = _ENCODINGS["WIRE_ENCODING_IDENTITY"]
STORED = _ENCODINGS["WIRE_ENCODING_STORED"]


class Method(NamedTuple):
    """A call of the service; `kind` is the method of a channel that makes it."""

    path: str
    kind: str
    request: Any
    response: Any


def _method(name: str, kind: str) -> Method:
    path = f"/{_PACKAGE}.Archive/{name}"
    return Method(path, kind, _message(f"{name}Request"), _message(f"{name}Response"))


METHODS = {
    "BatchRead": _method("BatchRead", "stream_stream"),
    "GetArchive": _method("GetArchive", "unary_unary"),
    "GetDictionary": _method("GetDictionary", "unary_stream"),
    "ListArchives": _method("ListArchives", "unary_unary"),
    "ListDocuments": _method("ListDocuments", "unary_unary"),
    "Read": _method("Read", "unary_unary"),
    # Its request is that of Read.
    "ReadStream": Method(f"/{_PACKAGE}.Archive/ReadStream", "unary_stream",
                         ReadRequest, _message("ReadStreamResponse")),
    "Scan": _method("Scan", "unary_stream"),
}
