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


_SINGLE = ("next_page_token", "is_filtered", "columns")


def _declare_columns() -> None:
    """Declares other forms of messages, for _columns.py: entries as bytes, and the fields of
    many entries put end to end. The numbers are those of archive.proto."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="quire_archive/columns.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in (
            ("DocumentPage", (("documents", field.TYPE_BYTES),
                              ("next_page_token", field.TYPE_STRING),
                              ("common_prefixes", field.TYPE_BYTES),
                              ("is_filtered", field.TYPE_BOOL),
                              ("columns", field.TYPE_BYTES))),
            ("DocumentFields", (("ordinal", field.TYPE_UINT64), ("id", field.TYPE_BYTES),
                                ("range", field.TYPE_BYTES),
                                ("capture_time_ms", field.TYPE_INT64),
                                ("media_type", field.TYPE_BYTES),
                                ("record_type", field.TYPE_BYTES),
                                ("fields", field.TYPE_BYTES))),
            ("FieldColumn", (("string_value", field.TYPE_BYTES),
                             ("integer_value", field.TYPE_SINT64),
                             ("float_value", field.TYPE_DOUBLE),
                             ("boolean_value", field.TYPE_BOOL),
                             ("time_us", field.TYPE_SINT64))),
            ("RangeColumns", (("offset", field.TYPE_UINT64),
                              ("size_bytes", field.TYPE_UINT64)))):
        declared = file.message_type.add(name=name)
        for number, (name_of_field, kind) in enumerate(fields, 1):
            declared.field.add(
                name=name_of_field, number=number, type=kind,
                label=field.LABEL_OPTIONAL if name_of_field in _SINGLE
                else field.LABEL_REPEATED)
    _pool.AddSerializedFile(file.SerializeToString())


def _declare_results() -> None:
    """Declares a form of BatchReadResponse whose results are one message. Parsers merge the values
    of a field that is not repeated, and append those of one that is: each field of MergedResults
    has those of all results, without an object for each. Absent values leave no gap."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="quire_archive/results.proto", package=_PACKAGE, syntax="proto2",
        dependency=["quire_archive/columns.proto"])
    for name, fields in (
            ("MergedDocuments", ((1, "ordinal", field.TYPE_UINT64), (3, "range", "RangeColumns"),
                                 (6, "record_type", field.TYPE_BYTES))),
            ("MergedResults", ((1, "tag", field.TYPE_UINT64), (2, "status", field.TYPE_BYTES),
                               (3, "range", "RangeColumns"),
                               (4, "document", "MergedDocuments"),
                               (5, "encoding", field.TYPE_UINT64),
                               (6, "checksum", field.TYPE_FIXED64),
                               (7, "data", field.TYPE_BYTES))),
            ("MergedResponse", ((1, "results", "MergedResults"),))):
        declared = file.message_type.add(name=name)
        for number, name_of_field, kind in fields:
            if isinstance(kind, str):
                declared.field.add(name=name_of_field, number=number, type=field.TYPE_MESSAGE,
                                   type_name=f".{_PACKAGE}.{kind}", label=field.LABEL_OPTIONAL)
            else:
                declared.field.add(name=name_of_field, number=number, type=kind,
                                   label=field.LABEL_REPEATED)
    _pool.AddSerializedFile(file.SerializeToString())


_declare_columns()
_declare_results()


def _message(name: str) -> Any:
    descriptor = _pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    # protobuf before 4.22.
    return message_factory.MessageFactory(_pool).GetPrototype(descriptor)


def _enum(name: str) -> Dict[str, int]:
    values = _pool.FindEnumTypeByName(f"{_PACKAGE}.{name}").values
    return {value.name: value.number for value in values}


BatchItem = _message("BatchItem")
ByteRange = _message("ByteRange")
BatchReadRequest = _message("BatchReadRequest")
BatchReadResponse = _message("BatchReadResponse")
Document = _message("Document")
DocumentColumns = _message("DocumentColumns")
DocumentFields = _message("DocumentFields")
FieldColumn = _message("FieldColumn")
RangeColumns = _message("RangeColumns")
GetArchiveRequest = _message("GetArchiveRequest")
GetDictionaryRequest = _message("GetDictionaryRequest")
ListArchivesRequest = _message("ListArchivesRequest")
ListCapturesRequest = _message("ListCapturesRequest")
ListDocumentsRequest = _message("ListDocumentsRequest")
MergedResponse = _message("MergedResponse")
ReadRequest = _message("ReadRequest")
ScanRequest = _message("ScanRequest")
RpcErrorInfo = _message("RpcErrorInfo")
RpcRetryInfo = _message("RpcRetryInfo")
RpcStatus = _message("RpcStatus")

ERROR_REASONS = _enum("ErrorReason")
REASON_NAMES = {number: name for name, number in ERROR_REASONS.items()}
# By their names in Python.
CAPTURE_MATCHES = {name.rpartition("_")[2].lower(): number
                   for name, number in _enum("CaptureMatch").items() if number}
_ENCODINGS = _enum("WireEncoding")
IDENTITY = _ENCODINGS["WIRE_ENCODING_IDENTITY"]
STORED = _ENCODINGS["WIRE_ENCODING_STORED"]


class Method(NamedTuple):
    """A call of the service; `kind` is the method of a channel that makes it. With `is_raw` its
    answers are bytes."""

    path: str
    kind: str
    request: Any
    response: Any
    is_raw: bool = False


def _method(name: str, kind: str) -> Method:
    path = f"/{_PACKAGE}.Archive/{name}"
    return Method(path, kind, _message(f"{name}Request"), _message(f"{name}Response"))


# A client serializes the requests of BatchRead itself: see item_field().
METHODS = {
    "BatchRead": _method("BatchRead", "stream_stream"),
    "BatchRead as bytes": _method("BatchRead", "stream_stream")._replace(is_raw=True),
    "GetArchive": _method("GetArchive", "unary_unary"),
    "GetDictionary": _method("GetDictionary", "unary_stream"),
    "ListArchives": _method("ListArchives", "unary_unary"),
    "ListCaptures": _method("ListCaptures", "unary_unary"),
    "ListDocuments": _method("ListDocuments", "unary_unary"),
    "ListDocuments as columns": _method("ListDocuments", "unary_unary")._replace(
        response=_message("DocumentPage")),
    "Read": _method("Read", "unary_unary"),
    # Its request is that of Read.
    "ReadStream": Method(f"/{_PACKAGE}.Archive/ReadStream", "unary_stream",
                         ReadRequest, _message("ReadStreamResponse")),
    "Scan": _method("Scan", "unary_stream"),
}


def serializer(method: Method) -> Any:
    """Of the requests of a method, for a channel; None: they are bytes."""
    return None if method.kind == "stream_stream" else method.request.SerializeToString


def deserializer(method: Method) -> Any:
    """Of the answers of a method, for a channel; None: they are bytes."""
    return None if method.is_raw else method.response.FromString


# --- Items of a batch as bytes, several times as fast as through BatchReadRequest.

_SHORT_VARINTS = [bytes((n,)) for n in range(128)] + [
    bytes((n & 127 | 128, n >> 7)) for n in range(128, 1 << 14)]


def varint(number: int) -> bytes:
    """`number` as protobuf encodes it. REQUIRES: it fits in 64 bits, unsigned."""
    if number < 1 << 14:
        return _SHORT_VARINTS[number]
    if number < 1 << 21:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


# Each returns a field `items` of a BatchReadRequest.

def item_field(item: bytes) -> bytes:
    """A BatchItem."""
    return b"\x12%b%b" % (varint(len(item)), item)


def id_field(tag: int, name: bytes) -> bytes:
    """An item of the document that an id names."""
    size = len(name)
    if size >= 100:
        return part_field(tag, name, b"")
    number = varint(tag)
    # Fields tag, document, and in it id.
    return b"\x12%c\x08%b\x1a%c\x0a%c%b" % (size + len(number) + 5, number, size + 2, size, name)


def ordinal_field(tag: int, ordinal: int) -> bytes:
    """An item of the document with an ordinal."""
    number, name = varint(tag), varint(ordinal)
    # Fields tag, document, and in it ordinal.
    return b"\x12%c\x08%b\x1a%c\x10%b" % (
        len(number) + len(name) + 4, number, len(name) + 1, name)


def part_field(tag: int, name: bytes, part: bytes) -> bytes:
    """An item of a part of that document; `part` is from byte_range(), or empty: all."""
    document = b"\x0a%b%b" % (varint(len(name)), name)
    if part:
        document += b"\x22%c%b" % (len(part), part)
    return item_field(b"\x08%b\x1a%b%b" % (varint(tag), varint(len(document)), document))


def range_field(tag: int, part: bytes) -> bytes:
    """An item of a range of the archive, from byte_range()."""
    return item_field(b"\x08%b\x12%c%b" % (varint(tag), len(part), part))


def byte_range(offset: int, size: int) -> bytes:
    """A ByteRange."""
    return b"\x08%b\x10%b" % (varint(offset), varint(size))
