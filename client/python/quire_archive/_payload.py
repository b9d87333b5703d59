# SPDX-License-Identifier: Apache-2.0
"""Pages of a crawl, as `quire get` prints them.

The rules are those of client/quire/payload_reader.h and payload/payload_decoder.h;
the tests compare both.
"""
from __future__ import annotations

import heapq
import re
from typing import List, NamedTuple, Optional, Tuple

from ._codings import (BLANK, CODINGS, UINT64_MAX, Coding, Fault, Output, ascii_lower,
                       decode_chunked)
from ._core import Core
from ._listing import Lister
from ._steps import ArchiveName, Steps
from .errors import ArchiveReplaced, DocumentNotFound, PayloadDamaged, RevisitTargetNotFound
from .records import (Answer, AnyKey, Document, Headers, Key, Payload, Span, Time, header,
                      parse_period, resolve, to_id, to_milliseconds)

# Bound on decoded payloads: a few coded bytes can decode to any size.
SIZE_MAX = 1 << 30
_HEADER_SIZE_MAX = 1 << 20
_EMPTY_LINE = re.compile(rb"\r?\n")
_HEADER_END = re.compile(rb"\n\r?\n")
_STEPS_MAX = 5
# Empty lines before an HTTP header are passed over up to this size.
_BLANK_SIZE_MAX = 64
_HTTP_MAGIC = b"HTTP/"
# The date of an ARC record, and what stands in its place after an IP address.
_ARC_DATE = re.compile(r"[0-9]{14}")
_ARC_ODD_DATE = re.compile(r"null|-|[0-9]{4,20}")
_IP_ADDRESS = re.compile(r"(?=.*[.:])[0-9A-Fa-f.:]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Captures examined for the target of a revisit without a date.
_CANDIDATES_MAX = 8
# Captures of an id that are tried, if the newest are no pages.
_CAPTURES_MAX = 1000
_REDIRECT = 3
_INT64_MAX = 2**63 - 1
_UINT64_DIGITS_MAX = 20


def _cut_short(what: str) -> Fault:
    return Fault(f"the record is cut short{what}", is_end=True)


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
        value = value.strip(BLANK)
        while at < len(lines) and lines[at].startswith((" ", "\t")):
            value += (" " if value else "") + lines[at].strip(BLANK)
            at += 1
        fields.append((name.rstrip(BLANK), value))
    return lines[0], fields


def _length(text: str) -> Optional[int]:
    if not (text.isascii() and text.isdigit()):
        return None
    # int() refuses thousands of digits.
    digits = text.lstrip("0") or "0"
    number = int(digits) if len(digits) <= _UINT64_DIGITS_MAX else UINT64_MAX + 1
    return number if number <= UINT64_MAX else None


def _codings(fields: Headers, wanted: str) -> List[str]:
    """Names in lists such as "gzip, chunked", in lower case."""
    names = [entry.partition(";")[0].strip(BLANK)
             for name, value in fields if ascii_lower(name) == wanted
             for entry in value.split(",")]
    return [name for name in map(ascii_lower, names) if name and name != "identity"]


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
    first, fields = _parse_header(text[_blank_size(text, 0):])
    status = None
    if first[:5].upper() == "HTTP/":
        number = first.partition(" ")[2][:3].strip(BLANK)
        status = int(number) if re.fullmatch(r"[+-]?[0-9]+", number) else 0
    lengths = (_length(value) for name, value in fields if ascii_lower(name) == "content-length")
    return _Http(status, fields, next((n for n in lengths if n is not None), None))


def _blank_size(data: bytes, at: int) -> int:
    """Size of the empty lines at `at`: some servers sent one before their status line."""
    end = at
    while end < at + _BLANK_SIZE_MAX:
        match = _EMPTY_LINE.match(data, end)
        if match is None:
            break
        end = match.end()
    return end - at


def _may_start_http(data: bytes, at: int) -> bool:
    """True if an HTTP response begins at `at`, after empty lines, or `data` ends before it
    can differ from one."""
    blank_size = _blank_size(data, at)
    first = data[at + blank_size:at + blank_size + len(_HTTP_MAGIC)]
    return _HTTP_MAGIC.startswith(first) or (first == b"\r" and blank_size < _BLANK_SIZE_MAX)


def _parse_arc_line(line: bytes) -> Optional[Headers]:
    """The fields that the record of an ARC file has in a WARC; None for other lines.

    URL IP DATE TYPE LENGTH, with more before the length in version 2. The date is the last
    word that is one, as URL and TYPE may have spaces.
    """
    text = line.decode("utf-8", "surrogateescape")
    text = text[:-1] if text.endswith("\n") else text
    text = text[:-1] if text.endswith("\r") else text
    before, _, length = text.rpartition(" ")
    if _length(length) is None:
        return None
    for date_form, address_form in ((_ARC_DATE, None), (_ARC_ODD_DATE, _IP_ADDRESS)):
        end = len(before)
        while end > 0:
            date_at = before.rfind(" ", 0, end) + 1
            address_end = max(date_at - 1, 0)
            address_at = before.rfind(" ", 0, address_end) + 1
            date, address = before[date_at:end], before[address_at:address_end]
            if date_form.fullmatch(date) and (
                    address_form is None or address_form.fullmatch(address)):
                url = before[:max(address_at - 1, 0)]
                if address and _SCHEME.match(url):
                    kind = before[end:].removeprefix(" ").partition(" ")[0]
                    return _arc_fields(url, date, kind, length)
                break
            end = address_end
    return None


def _arc_fields(url: str, date: str, kind: str, length: str) -> Headers:
    is_description = url.startswith("filedesc://")
    seconds = date[12:] or "00"
    return [("WARC-Type", "warcinfo" if is_description else "response"), ("WARC-Target-URI", url),
            ("WARC-Date", f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{seconds}Z"
             if len(date) in (12, 14) and date.isdigit() else ""),
            ("Content-Type", kind if is_description else "application/http;msgtype=response"),
            ("Content-Length", length)]


# --- Records.

def _steps_of(http: _Http) -> List[Coding]:
    """Layers of a body, outermost first. Codings that do not exist, such as utf-8, add none."""
    transfer = _codings(http.fields, "transfer-encoding")
    content = _codings(http.fields, "content-encoding")
    if len(transfer) + len(content) > _STEPS_MAX:
        raise Fault(f"the body has {len(transfer) + len(content)} codings one upon the other, "
                     f"at most {_STEPS_MAX} are decoded")
    made = [decode_chunked if name == "chunked" else CODINGS.get(name)
            for name in transfer[::-1]] + [CODINGS.get(name) for name in content[::-1]]
    return [step for step in made if step is not None]


class Record:
    """A decoded record of a WARC or an ARC; the fields of the latter are those that it has
    in a WARC."""

    def __init__(self) -> None:
        self.warc: Optional[Headers] = None
        self.http: Optional[_Http] = None
        self.data = b""
        # None: the payload is complete.
        self.fault: Optional[str] = None
        # The header of a response is complete, and no byte of the body follows that it
        # announces, or does not rule out: the answer to HEAD.
        self.lacks_body = False

    @property
    def type(self) -> str:
        """WARC-Type, in lower case."""
        return ascii_lower(header(self.warc or [], "WARC-Type"))

    @property
    def is_page(self) -> bool:
        """False for redirects, and answers to HEAD."""
        return self.http is None or not ((self.http.status or 0) // 100 == _REDIRECT
                                         or self.lacks_body)


def decode_record(record: bytes, size_max: int = SIZE_MAX) -> Record:
    """Decodes a record. Raises LimitExceeded over `size_max`."""
    decoded = Record()
    try:
        _decode_into(decoded, record, size_max)
    except Fault as fault:
        decoded.data = fault.data
        decoded.fault = str(fault)
    return decoded


def _header_end(data: bytes, at: int, what: str, blank_size: int = 0) -> Optional[int]:
    """Offset after the header at `at`, and empty lines before it; None if it does not end."""
    begin = at + blank_size
    match = _EMPTY_LINE.match(data, begin) \
        or _HEADER_END.search(data, begin, at + _HEADER_SIZE_MAX)
    if match is not None:
        return match.end()
    if len(data) - at > _HEADER_SIZE_MAX:
        raise Fault(f"no empty line ends the {what} header within 1 MiB")
    return None


def _take_record_header(record: bytes) -> Tuple[Headers, int, int]:
    """The fields of a record, the size of its block, and its offset."""
    # Some programs write it in lower case.
    is_warc = record[:5].upper() == b"WARC/"
    if not is_warc:
        line_end = record.find(b"\n", 0, _HEADER_SIZE_MAX) + 1
        arc = _parse_arc_line(record[:line_end])
        if arc is not None:
            return arc, _length(header(arc, "Content-Length")) or 0, line_end
    end = _header_end(record, 0, "WARC")
    if end is None:
        raise _cut_short(" inside its WARC header") if record \
            else Fault("no WARC record: no bytes")
    _, fields = _parse_header(record[:end])
    if not is_warc:
        raise Fault(f"found {record[:20]!r} where a WARC record must start")
    length = _length(header(fields, "Content-Length"))
    if length is None:
        raise Fault("the record's Content-Length must be a number of bytes, got "
                    f"{header(fields, 'Content-Length')[:20]!r}")
    return fields, length, end


def _decode_into(decoded: Record, record: bytes, size_max: int) -> None:
    fields, length, end = _take_record_header(record)
    decoded.warc = fields
    if decoded.type == "revisit":
        return
    block = record[end:end + length]
    missing = length - len(block)
    body: Optional[bytes] = block
    if _holds_http(decoded):
        body = _take_http(decoded, block, missing == 0)
    fault = None
    if body is None:
        fault = _cut_short(" inside its HTTP header")
    else:
        decoded.lacks_body = not body and not missing and decoded.http is not None \
            and decoded.http.status is not None and decoded.http.may_have_body \
            and decoded.http.content_length != 0
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
    kind = header(decoded.warc or [], "Content-Type").partition(";")[0].strip(BLANK)
    return decoded.type in ("response", "request") \
        and ascii_lower(kind) in ("application/http", "")


def _take_http(decoded: Record, block: bytes, is_whole: bool) -> Optional[bytes]:
    """The body; None if the header does not end."""
    at = 0
    is_response = decoded.type == "response"
    while at < len(block):
        if is_response and not _may_start_http(block, at):
            # A body without a header.
            return block[at:]
        end = _header_end(block, at, "HTTP", _blank_size(block, at))
        if end is None:
            # Empty lines alone are the body.
            is_blank = is_response and is_whole and not block[at:].strip(b"\r\n")
            return block[at:] if is_blank else None
        decoded.http = _parse_http(block[at:end])
        at = end
        code = 200 if decoded.http.status is None else decoded.http.status
        # An interim response is followed by the final one.
        if code // 100 != 1 or code == 101:
            return block[at:]
    return None


def _coding_overhead(size: int) -> int:
    """Bound on the bytes by which a coding makes a body larger."""
    return 64 + size // 1000


def _decode_body(decoded: Record, body: bytes, is_whole: bool,
                 size_max: int) -> Optional[Fault]:
    """Sets `data`; returns the fault of a body that ends too early.

    Raises Fault for a malformed body.
    """
    http = decoded.http
    decoded.data = body
    interim = http is not None and http.status is not None and http.status // 100 == 1 \
        and http.status != 101
    if http is None or interim:
        return None
    steps = _steps_of(http)
    # An answer to HEAD, or a redirect, is whole.
    if not body:
        return None
    is_short = http.may_have_body and not _codings(http.fields, "transfer-encoding") \
        and (http.content_length or 0) > len(body)
    was_coded = True
    fault: Optional[Fault] = None
    for step in steps:
        try:
            decoded.data, is_coded = step(
                decoded.data, is_whole and not is_short and fault is None, Output(size_max))
            was_coded = was_coded and is_coded
        except Fault as found:
            decoded.data, fault = found.data, found
    if fault is not None:
        if not fault.is_end:
            fault.data = decoded.data
            raise fault
        return fault
    # Otherwise the size may be that of the coded body.
    if is_whole and is_short and (
            was_coded or (http.content_length or 0) - len(body) > _coding_overhead(len(body))):
        return _cut_short(f": its body has {len(body)} bytes, the Content-Length of HTTP says "
                          f"{http.content_length}")
    return None


# --- Reading, and following revisits.

def _names_id_alone(key: AnyKey) -> bool:
    if isinstance(key, Key):
        return not isinstance(key.name, int) and key.occurrence is None and not key.record_types
    return isinstance(key, (str, bytes, bytearray))


def _id_and_time(key: AnyKey) -> Tuple[bytes, Optional[Time]]:
    name, at = (key.name, key.at) if isinstance(key, Key) else (key, None)
    assert isinstance(name, (str, bytes, bytearray))
    return to_id(name), at


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


class _Source(NamedTuple):
    """The record that has a payload, and how it was found."""

    found: _Found
    revisit: Optional[Document] = None
    unresolved: str = ""


def _payload(source: _Source, passed_count: int) -> Payload:
    """The payload; raises PayloadDamaged if it is incomplete."""
    payload = Payload(source.found.document, source.found.data, source.revisit,
                      source.unresolved, passed_count=passed_count)
    record = source.found.record
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
    resolve(key)
    if not _names_id_alone(key):
        source = yield from _read_source(core, archive, key, None, size_max)
        return _payload(source, 0)
    name, at = _id_and_time(key)
    newest = Key(name, at, with_revisits=True)
    held = Key(name, at)
    source = yield from _read_source(core, archive, newest, held, size_max)
    if _is_page(source):
        return _payload(source, 0)
    captures = yield from _list_captures(core, archive, name, at)
    # The first is the one that was read.
    for passed_count, ordinal in enumerate(captures[1:], 1):
        source = yield from _read_source(core, archive, ordinal, held, size_max)
        if source.found.document.id != name:
            raise ArchiveReplaced("the archive was replaced by other contents meanwhile; "
                                  "read again")
        if _is_page(source):
            return _payload(source, passed_count)
    # None is a page: the newest, whatever it is.
    source = yield from _read_source(core, archive, newest, held, size_max)
    return _payload(source, 0)


def _is_page(source: _Source) -> bool:
    return source.found.record is None or source.found.record.is_page


def _read_source(core: Core, archive: ArchiveName, key: AnyKey, held: Optional[Key],
                 size_max: int) -> Steps[_Source]:
    """The document of `key`, or the one that it revisits.

    held: read instead if the archive does not have the revisited one; None: an error.
    """
    found = yield from _read_record(core, archive, key, size_max)
    if not _is_revisit(found):
        return _Source(found)
    reference = _Reference(found)
    target = yield from _follow(core, archive, reference, size_max)
    if target is not None:
        return _Source(target, found.document)
    time = found.document.capture_time
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ") if time is not None else "unknown time"
    unresolved = (f"the capture of {shown} is a revisit of {reference.describe()}, which the "
                  "archive does not hold")
    if held is None:
        raise RevisitTargetNotFound(unresolved)
    try:
        return _Source((yield from _read_record(core, archive, held, size_max)), None, unresolved)
    except DocumentNotFound:
        raise RevisitTargetNotFound(unresolved) from None


def _list_captures(core: Core, archive: ArchiveName, name: bytes,
                   at: Optional[Time]) -> Steps[List[int]]:
    """Ordinals of responses and revisits of an id, as reads at that time prefer them: the
    newest up to then, then the oldest after it; of equal times the last in the archive."""
    at_ms = _INT64_MAX if at is None else to_milliseconds(at)

    def rank(document: Document) -> Tuple[bool, int, int]:
        time = document.capture_time_ms
        time = -_INT64_MAX - 1 if time is None else time
        return time > at_ms, time if time > at_ms else -time, -document.ordinal

    best: List[Document] = []
    lister = Lister(core, archive, name, None, 0)
    while True:
        page = yield from lister.next_page()
        documents = [] if page is None else lister.documents_of(page)
        best = heapq.nsmallest(_CAPTURES_MAX, [*best, *(
            document for document in documents
            if document.id == name and document.record_type in ("response", "revisit"))], rank)
        # The id itself precedes all that start with it.
        if page is None or (documents and documents[-1].id != name):
            return [document.ordinal for document in best]


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
            if ascii_lower(self._digest) == ascii_lower(digest):
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
