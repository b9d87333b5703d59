# SPDX-License-Identifier: Apache-2.0
"""Pages of a crawl, as `quire get` prints them.

The rules are those of client/quire/payload_reader.h and payload/payload_decoder.h;
the tests compare both.
"""
from __future__ import annotations

import re
import zlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ._core import Core
from ._steps import ArchiveName, Steps
from ._stored import optional_module
from .errors import (DocumentNotFound, LimitExceeded, PayloadDamaged, RecordTypeNotFound,
                     RevisitTargetNotFound)
from .records import (Answer, AnyKey, Document, Headers, Key, Payload, Span, header,
                      parse_period)

brotli = optional_module("brotli")
zstandard = optional_module("zstandard")

# Bound on decoded payloads: a few coded bytes can decode to any size.
SIZE_MAX = 1 << 30
_HEADER_SIZE_MAX = 1 << 20
_HEADER_END = re.compile(rb"(?:\A|\n)\r?\n")
_BLANK = " \t\n\v\f\r"
_STEPS_MAX = 5
_CHUNK_LINE_SIZE_MAX = 16 << 10
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]+)[ \t\n\v\f\r]*(?:;.*)?", re.DOTALL)
# RFC 8878, section 7.
_ZSTD_WINDOW_SIZE_MAX = 8 << 20
# Output is bounded after each of these.
_PIECE_SIZE = 16 << 10
# A byte of brotli can decode to 16 MiB.
_BROTLI_PIECE_SIZE = 64
# Captures examined for the target of a revisit without a date.
_CANDIDATES_MAX = 8
_INT64_MAX = 2**63 - 1
_UINT64_MAX = 2**64 - 1


class _Fault(Exception):
    """The payload is malformed; `data` is the output so far.

    `is_end`: it ends too early, and nothing else is wrong.
    """

    def __init__(self, message: str, data: bytes = b"", is_end: bool = False) -> None:
        super().__init__(message)
        self.data = data
        self.is_end = is_end


def _cut_short(what: str) -> _Fault:
    return _Fault(f"the record is cut short{what}", is_end=True)


# --- Headers.

def _parse_header(text: bytes) -> Tuple[str, Headers]:
    """First line and fields. A line without a colon has an empty name."""
    lines = [line[:-1] if line.endswith("\r") else line
             for line in text.decode("utf-8", "surrogateescape").split("\n")]
    fields: Headers = []
    at = 1
    while at < len(lines) and lines[at]:
        name, colon, value = lines[at].partition(":")
        at += 1
        if not colon:
            fields.append(("", name))
            continue
        value = value.strip(_BLANK)
        while at < len(lines) and lines[at].startswith((" ", "\t")):
            value += (" " if value else "") + lines[at].strip(_BLANK)
            at += 1
        fields.append((name.rstrip(_BLANK), value))
    return lines[0], fields


def _length(text: str) -> Optional[int]:
    if text.isascii() and text.isdigit() and int(text) <= _UINT64_MAX:
        return int(text)
    return None


def _codings(fields: Headers, wanted: str) -> List[str]:
    """Names in lists such as "gzip, chunked", in lower case."""
    names = [entry.partition(";")[0].strip(_BLANK).lower()
             for name, value in fields if name.lower() == wanted
             for entry in value.split(",")]
    return [name for name in names if name and name != "identity"]


class _Http(NamedTuple):
    status: Optional[int]
    fields: Headers
    content_length: Optional[int]

    @property
    def may_have_body(self) -> bool:
        """RFC 9112, section 6.3."""
        code = 200 if self.status is None else self.status
        return code not in (204, 304) and code // 100 != 1


def _parse_http(text: bytes) -> _Http:
    first, fields = _parse_header(text)
    status = None
    if first[:5].upper() == "HTTP/":
        number = first.partition(" ")[2][:3].strip(_BLANK)
        status = int(number) if re.fullmatch(r"[+-]?[0-9]+", number) else 0
    lengths = (_length(value) for name, value in fields if name.lower() == "content-length")
    return _Http(status, fields, next((n for n in lengths if n is not None), None))


# --- Codings. Each takes a whole body and returns (decoded, was it coded). Raises
# _Fault with the output before the error. `is_whole`: False if more bytes of the
# body are missing, for which another fault is reported already.

class _Output:
    """Bytes of one layer, bounded."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._parts: List[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Appends. Raises LimitExceeded."""
        self.size += len(part)
        if self.size > self._size_max:
            raise LimitExceeded(f"the payload decodes to more than {self._size_max} bytes, "
                                "size_max")
        self._parts.append(part)

    def fault(self, message: str) -> _Fault:
        """After what was decoded."""
        return _Fault(message, self.data())

    def end(self, message: str) -> _Fault:
        """The body ends too early."""
        return _Fault(f"the body is cut short{message}", self.data(), is_end=True)

    def data(self) -> bytes:
        """All of it."""
        return b"".join(self._parts)


_Decoded = Tuple[bytes, bool]
_Coding = Callable[[bytes, bool, _Output], _Decoded]


def _decode_chunked(body: bytes, is_whole: bool, out: _Output) -> _Decoded:
    at = 0
    is_first = True
    while True:
        line, end = _chunk_line(body, at)
        if line is None:
            too_long = len(body) - at > _CHUNK_LINE_SIZE_MAX
            if is_first and (too_long or (is_whole and at < len(body))):
                return body, False
            if too_long:
                raise _malformed_chunk(out, body[at:], "begin")
            if is_whole:
                raise out.end(": its last chunk is missing")
            return out.data(), True
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None or int(match.group(1), 16) > _UINT64_MAX:
            if is_first:
                return body, False
            raise _malformed_chunk(out, body[at:], "begin")
        is_first = False
        size = int(match.group(1), 16)
        if size == 0:
            return _skip_trailer(body, end, out)
        chunk = body[end:end + size]
        out.add(chunk)
        at = end + size
        if len(chunk) < size:
            if is_whole:
                raise out.end(f": {size - len(chunk)} bytes of a chunk are missing")
            return out.data(), True
        line, end = _chunk_line(body, at)
        if line is None and len(body) - at <= _CHUNK_LINE_SIZE_MAX:
            if is_whole:
                raise out.end(" at the end of a chunk")
            return out.data(), True
        if line is None or line:
            raise _malformed_chunk(out, body[at:], "end")
        at = end


def _chunk_line(body: bytes, at: int) -> Tuple[Optional[bytes], int]:
    """The line at `at` without its end, and the offset after it; None if it does not end."""
    end = body.find(b"\n", at, at + _CHUNK_LINE_SIZE_MAX)
    if end < 0:
        return None, at
    return body[at:end + 1].rstrip(_BLANK.encode()), end + 1


def _skip_trailer(body: bytes, at: int, out: _Output) -> _Decoded:
    while True:
        line, end = _chunk_line(body, at)
        if line is None and len(body) - at > _CHUNK_LINE_SIZE_MAX:
            raise _malformed_chunk(out, body[at:], "begin")
        if not line:
            return out.data(), True
        at = end


def _malformed_chunk(out: _Output, rest: bytes, where: str) -> _Fault:
    return out.fault("the body is not chunked as Transfer-Encoding says: found "
                     f"{rest[:20]!r} where a chunk must {where}")


def _bad_coding(out: _Output, name: str, why: object) -> _Fault:
    return out.fault(f"the body is not {name} data, as its header says, or damaged: {why}")


def _unfinished(out: _Output, name: str) -> _Fault:
    return out.end(f": its {name} data do not end")


def _decode_zlib(name: str) -> _Coding:
    def decode(body: bytes, is_whole: bool, out: _Output) -> _Decoded:
        if len(body) < 2:
            return (body if is_whole else b""), not (is_whole and body)
        if name == "gzip":
            if body[:2] != b"\x1f\x8b":
                return body, False
            bits = zlib.MAX_WBITS + 16
        else:
            has_header = body[0] & 15 == 8 and (body[0] * 256 + body[1]) % 31 == 0
            bits = zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
        rest = memoryview(body)
        is_first_member = True
        while True:
            decoder = zlib.decompressobj(bits)
            begun = out.size
            try:
                rest = _inflate(decoder, rest, out)
            except zlib.error as error:
                if not is_first_member and out.size == begun:
                    return out.data(), True
                raise _bad_coding(out, name, error) from None
            if not decoder.eof:
                if is_whole:
                    raise _unfinished(out, name)
                return out.data(), True
            # Another member follows, or bytes that are ignored.
            if name != "gzip" or not rest or rest[0] != 0x1F:
                return out.data(), True
            is_first_member = False
    return decode


def _inflate(decoder: Any, rest: memoryview, out: _Output) -> memoryview:
    """Decodes up to the end of a stream; returns what follows it."""
    pending: Any = b""
    # A byte first: after an error zlib does not say if there was output.
    size_max = 1
    while not decoder.eof and (rest or pending):
        if not pending:
            pending, rest = rest[:_PIECE_SIZE], rest[_PIECE_SIZE:]
        out.add(decoder.decompress(pending, size_max))
        pending = decoder.unconsumed_tail
        size_max = 1 << 20
    while not decoder.eof:
        # Bytes that are decoded already.
        part = decoder.decompress(b"", 1 << 20)
        if not part:
            break
        out.add(part)
    unused = len(decoder.unused_data)
    return memoryview(bytes(decoder.unused_data) + bytes(rest)) if unused else rest


def _decode_brotli(body: bytes, is_whole: bool, out: _Output) -> _Decoded:
    if not body:
        return b"", True
    if brotli is None:
        raise out.fault("the body is coded as br; install the package brotli")
    decoder = brotli.Decompressor()
    for at in range(0, len(body), _BROTLI_PIECE_SIZE):
        if decoder.is_finished():
            return out.data(), True
        try:
            out.add(decoder.process(body[at:at + _BROTLI_PIECE_SIZE]))
        except brotli.error as error:
            if decoder.is_finished():
                return out.data(), True
            raise _bad_coding(out, "br", error) from None
    if not decoder.is_finished() and is_whole:
        raise _unfinished(out, "br")
    return out.data(), True


def _decode_zstd(body: bytes, is_whole: bool, out: _Output) -> _Decoded:
    if len(body) < 4:
        return (body if is_whole else b""), not (is_whole and body)
    if not _is_zstd(body):
        return body, False
    if zstandard is None:
        raise out.fault("the body is coded as zstd; install the package zstandard")
    at = 0
    while at < len(body):
        if _is_skippable(body, at):
            end = at + 8 + int.from_bytes(body[at + 4:at + 8], "little")
            is_complete = len(body) >= at + 8 and end <= len(body)
        else:
            end, is_complete = _decode_zstd_frame(body, at, out)
        if not is_complete:
            if is_whole:
                raise _unfinished(out, "zstd")
            break
        at = end
    return out.data(), True


def _decode_zstd_frame(body: bytes, at: int, out: _Output) -> Tuple[int, bool]:
    """Offset after the frame, and if it is complete."""
    decoder = zstandard.ZstdDecompressor(
        max_window_size=_ZSTD_WINDOW_SIZE_MAX).decompressobj(write_size=1 << 17)
    end = at
    while end < len(body):
        piece = body[end:end + _PIECE_SIZE]
        try:
            out.add(decoder.decompress(piece))
        except zstandard.ZstdError as error:
            raise _bad_coding(out, "zstd", error) from None
        end += len(piece)
        if decoder.eof:
            return end - len(decoder.unused_data), True
    return end, False


def _is_skippable(body: bytes, at: int) -> bool:
    return body[at + 1:at + 4] == b"\x2a\x4d\x18" and body[at] & 0xF0 == 0x50


def _is_zstd(body: bytes) -> bool:
    return body[:4] == b"\x28\xb5\x2f\xfd" or _is_skippable(body, 0)


_CONTENT_CODINGS: Dict[str, _Coding] = {
    "gzip": _decode_zlib("gzip"), "x-gzip": _decode_zlib("gzip"),
    "deflate": _decode_zlib("deflate"), "br": _decode_brotli, "zstd": _decode_zstd}


def _steps_of(http: _Http) -> List[_Coding]:
    """Layers of a body, outermost first."""
    transfer = _codings(http.fields, "transfer-encoding")
    content = _codings(http.fields, "content-encoding")
    if len(transfer) + len(content) > _STEPS_MAX:
        raise _Fault(f"the body has {len(transfer) + len(content)} codings one upon the other, "
                     f"at most {_STEPS_MAX} are decoded")
    made: List[_Coding] = []
    for name in transfer[::-1]:
        made.append(_decode_chunked if name == "chunked" else _content_coding(name))
    return made + [_content_coding(name) for name in content[::-1]]


def _content_coding(name: str) -> _Coding:
    coding = _CONTENT_CODINGS.get(name)
    if coding is None:
        raise _Fault(f"the body is coded as {name!r}; known are gzip, deflate, br, zstd and, for "
                     "transfer, chunked")
    return coding


# --- Records.

class Record:
    """A decoded WARC record."""

    def __init__(self) -> None:
        self.warc: Optional[Headers] = None
        self.http: Optional[_Http] = None
        self.data = b""
        # None: the payload is complete.
        self.fault: Optional[str] = None

    @property
    def type(self) -> str:
        """WARC-Type, in lower case."""
        return header(self.warc or [], "WARC-Type").lower()


def decode_record(record: bytes, size_max: int = SIZE_MAX) -> Record:
    """Decodes a record. Raises LimitExceeded over `size_max`."""
    decoded = Record()
    try:
        _decode_into(decoded, record, size_max)
    except _Fault as fault:
        decoded.data = fault.data
        decoded.fault = str(fault)
    return decoded


def _header_end(data: bytes, at: int, what: str) -> Optional[int]:
    """Offset after the header at `at`; None if it does not end."""
    match = _HEADER_END.search(data[at:at + _HEADER_SIZE_MAX])
    if match is not None:
        return at + match.end()
    if len(data) - at > _HEADER_SIZE_MAX:
        raise _Fault(f"no empty line ends the {what} header within 1 MiB")
    return None


def _decode_into(decoded: Record, record: bytes, size_max: int) -> None:
    end = _header_end(record, 0, "WARC")
    if end is None:
        raise _cut_short(" inside its WARC header") if record \
            else _Fault("no WARC record: no bytes")
    first, fields = _parse_header(record[:end])
    if not first.startswith("WARC/"):
        raise _Fault(f"found {record[:20]!r} where a WARC record must start")
    length = _length(header(fields, "Content-Length"))
    if length is None:
        raise _Fault("the record's Content-Length must be a number of bytes, got "
                     f"{header(fields, 'Content-Length')[:20]!r}")
    decoded.warc = fields
    if decoded.type == "revisit":
        return
    block = record[end:end + length]
    missing = length - len(block)
    body: Optional[bytes] = block
    if _holds_http(decoded):
        body = _take_http(decoded, block)
    fault = None
    if body is None:
        fault = _cut_short(" inside its HTTP header")
    else:
        fault = _decode_body(decoded, body, missing == 0, size_max)
    if missing:
        fault = _cut_short(f": {missing} of the {length} bytes of its block are missing")
    truncated = header(fields, "WARC-Truncated")
    if truncated:
        # This explains all other missing bytes.
        fault = _cut_short(f" by the crawler (WARC-Truncated: {truncated[:40]})")
    if fault is not None:
        decoded.fault = str(fault)


def _holds_http(decoded: Record) -> bool:
    kind = header(decoded.warc or [], "Content-Type").partition(";")[0].strip(_BLANK).lower()
    return decoded.type in ("response", "request") and kind in ("application/http", "")


def _take_http(decoded: Record, block: bytes) -> Optional[bytes]:
    """The body; None if the header does not end."""
    at = 0
    while at < len(block):
        if decoded.type == "response" and not b"HTTP/".startswith(block[at:at + 5]):
            # A body without a header.
            return block[at:]
        end = _header_end(block, at, "HTTP")
        if end is None:
            return None
        decoded.http = _parse_http(block[at:end])
        at = end
        code = 200 if decoded.http.status is None else decoded.http.status
        # An interim response is followed by the final one.
        if code // 100 != 1 or code == 101:
            return block[at:]
    return None


def _decode_body(decoded: Record, body: bytes, is_whole: bool,
                 size_max: int) -> Optional[_Fault]:
    """Sets `data`; returns the fault of a body that ends too early.

    Raises _Fault for a malformed body.
    """
    http = decoded.http
    decoded.data = body
    interim = http is not None and http.status is not None and http.status // 100 == 1 \
        and http.status != 101
    if http is None or interim:
        return None
    steps = _steps_of(http)
    if not body and not http.may_have_body:
        return None
    was_coded = True
    fault: Optional[_Fault] = None
    for step in steps:
        try:
            decoded.data, is_coded = step(decoded.data, is_whole and fault is None,
                                          _Output(size_max))
            was_coded = was_coded and is_coded
        except _Fault as found:
            decoded.data, fault = found.data, found
    if fault is not None:
        if not fault.is_end:
            fault.data = decoded.data
            raise fault
        return fault
    if is_whole and was_coded and http.may_have_body \
            and not _codings(http.fields, "transfer-encoding") \
            and (http.content_length or 0) > len(body):
        return _cut_short(f": its body has {len(body)} bytes, the Content-Length of HTTP says "
                          f"{http.content_length}")
    return None


# --- Reading, and following revisits.

def _names_id_alone(key: AnyKey) -> bool:
    if isinstance(key, Key):
        return not isinstance(key.name, int) and key.occurrence is None and not key.record_types
    return isinstance(key, (str, bytes, bytearray))


def _with(key: AnyKey, record_types: List[str]) -> Key:
    at = key.at if isinstance(key, Key) else None
    name = key.name if isinstance(key, Key) else key
    return Key(name, at, record_types)  # type: ignore[arg-type]


class _Found(NamedTuple):
    document: Document
    record: Optional[Record]
    data: bytes


def _read_record(core: Core, archive: ArchiveName, key: AnyKey, size_max: int) -> Steps[_Found]:
    answer: Answer = yield from core.read(archive, key)
    document = answer.document
    assert document is not None
    if document.record_type is None:
        return _Found(document, None, answer.data)
    record = decode_record(answer.data, size_max)
    return _Found(document, record, record.data)


def _payload(found: _Found, revisit: Optional[Document] = None, unresolved: str = "") -> Payload:
    """The payload; raises PayloadDamaged if it is incomplete."""
    payload = Payload(found.document, found.data, revisit, unresolved)
    record = found.record
    if record is not None:
        payload.warc_headers = record.warc
        if record.http is not None:
            payload.http_status = record.http.status
            payload.http_headers = record.http.fields
        if record.fault is not None:
            error = PayloadDamaged(record.fault)
            error.payload = payload
            raise error
    return payload


def _is_revisit(found: _Found) -> bool:
    return found.record is not None and found.record.type == "revisit"


def read_payload(core: Core, archive: ArchiveName, key: AnyKey,
                 size_max: int) -> Steps[Payload]:
    """See Archive.payload()."""
    if isinstance(key, Span) or (isinstance(key, Key) and key.range is not None):
        raise ValueError("a payload is read as a whole: name no part of the document")
    id_alone = _names_id_alone(key)
    try:
        found = yield from _read_record(
            core, archive, _with(key, ["response", "revisit"]) if id_alone else key, size_max)
    except RecordTypeNotFound:
        if not id_alone:
            raise
        found = yield from _read_record(core, archive, key, size_max)
    if not _is_revisit(found):
        return _payload(found)
    reference = _Reference(found)
    target = yield from _follow(core, archive, reference, size_max)
    if target is not None:
        return _payload(target, found.document)
    time = found.document.capture_time
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ") if time is not None else "unknown time"
    unresolved = (f"the capture of {shown} is a revisit of {reference.describe()}, which the "
                  "archive does not hold")
    missing = RevisitTargetNotFound(unresolved)
    if not id_alone:
        raise missing
    try:
        held = yield from _read_record(core, archive, key, size_max)
    except DocumentNotFound:
        raise missing from None
    return _payload(held, None, unresolved)


def _follow(core: Core, archive: ArchiveName, reference: "_Reference",
            size_max: int) -> Steps[Optional[_Found]]:
    """The target of a revisit; None if the archive does not have it."""
    time = reference.at
    for _ in range(_CANDIDATES_MAX):
        try:
            found = yield from _read_record(
                core, archive, Key(reference.uri, time, ["response", "resource"]), size_max)
        except DocumentNotFound:
            return None
        if reference.means(found):
            return found
        found_time = found.document.capture_time_ms
        if found_time is None or found_time > time:
            return None
        time = found_time - 1
    return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _without_angles(uri: str) -> str:
    return uri[1:-1] if len(uri) >= 2 and uri[0] == "<" and uri[-1] == ">" else uri


class _Reference:
    """Of a revisit to another record."""

    def __init__(self, revisit: _Found) -> None:
        assert revisit.record is not None and revisit.record.warc is not None
        fields = revisit.record.warc
        uri = _without_angles(header(fields, "WARC-Refers-To-Target-URI")) \
            or _without_angles(header(fields, "WARC-Target-URI"))
        self.uri = _bytes(uri) or revisit.document.id
        self._date = header(fields, "WARC-Refers-To-Date")
        self._digest = header(fields, "WARC-Payload-Digest")
        self._period: Optional[Tuple[int, int]] = None
        time = revisit.document.capture_time_ms
        # The newest capture that may be the target is current then.
        self.at = _INT64_MAX if time is None else time
        try:
            self._period = parse_period(self._date)
            self.at = self._period[1]
        except ValueError:
            pass

    def means(self, found: _Found) -> bool:
        """True if that record is the target."""
        if found.record is None or found.record.warc is None:
            return False
        digest = header(found.record.warc, "WARC-Payload-Digest")
        if self._digest and digest:
            if self._digest.lower() == digest.lower():
                return True
            if self._digest.partition(":")[0] == digest.partition(":")[0]:
                return False
        # A server that answered "not modified" meant an earlier capture.
        if self._period is None:
            return not self._digest
        time = found.document.capture_time_ms
        return time is not None and self._period[0] <= time <= self._period[1]

    def describe(self) -> str:
        """Text for messages."""
        text = f'"{self.uri.decode("utf-8", "backslashreplace")}"'
        if self._date:
            return f'{text} of "{self._date[:40]}"'
        return f'{text} with the digest "{self._digest}"' if self._digest else text
