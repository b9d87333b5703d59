# SPDX-License-Identifier: Apache-2.0
"""Names of what is read, and descriptions of what was read."""
from __future__ import annotations

import dataclasses
import datetime
import operator
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .errors import QuireError

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_INT64_MAX = 2**63 - 1
# Record type of what `quired redact` leaves of a document: neither id nor text.
WITHDRAWN_TYPE = "withdrawn"

# Value of a field. Strings that are not UTF-8 have surrogates. A time is in UTC; outside the
# years 1 to 9999 it is a number of microseconds since 1970.
FieldValue = Union[None, str, int, float, bool, datetime.datetime]
# By number of quire.v1.FieldType.
_FIELD_TYPES = {1: "string", 2: "integer", 3: "float", 4: "boolean", 5: "time"}
_NO_FIELDS: Dict[str, FieldValue] = {}


class Span(NamedTuple):
    """Bytes [offset, offset + size) of an archive's documents put end to end."""

    offset: int
    size: int


# A point in time: a datetime (naive: UTC), milliseconds since 1970, or text as
# `quire get --at` takes it: "2022-06" and "20220615123045" stand for their last moment.
Time = Union[datetime.datetime, int, str]


class Key(NamedTuple):
    """Names a document, or a part of it, where an id or ordinal is not enough."""

    # bytes or text (in UTF-8): an id. int: an ordinal, from 0, in archive order.
    name: Union[bytes, str, int]
    # With an id: the capture that was current at this time; None: the newest.
    at: Optional[Time] = None
    # With an id: only documents of these WARC record types, a list; "" is that of
    # documents that are not from a WARC. None: responses; if there are none,
    # resources; if there are none, "".
    record_types: Optional[Sequence[str]] = None
    # With an id: the n-th document of that id, from 0, of any type and time.
    occurrence: Optional[int] = None
    # (offset, size) in the document; None: all of it.
    range: Optional[Tuple[int, int]] = None
    # With an id, and without record_types and occurrence: a revisit counts as a response.
    with_revisits: bool = False


AnyKey = Union[bytes, str, int, Key, Span]


class Document:
    """Description of a document."""

    __slots__ = ("ordinal", "id", "offset", "size", "capture_time_ms", "media_type",
                 "record_type", "fields")
    _compared = __slots__[:-1]

    # From 0, in archive order.
    ordinal: int
    # Any bytes; may be empty, and may repeat.
    id: bytes
    # Offset of its first byte among all bytes of the archive.
    offset: int
    size: int
    # Since 1970-01-01 UTC; None if the source has none.
    capture_time_ms: Optional[int]
    # Such as "text/html".
    media_type: Optional[str]
    # Such as "response"; None if the document is not from a WARC.
    record_type: Optional[str]
    # The fields that documents() was asked for, by name; None is null. Not compared.
    fields: Mapping[str, FieldValue]

    @property
    def name(self) -> str:
        """The id as text; bytes that are not UTF-8 become surrogates."""
        return self.id.decode("utf-8", "surrogateescape")

    @property
    def capture_time(self) -> Optional[datetime.datetime]:
        """In UTC."""
        if self.capture_time_ms is None:
            return None
        return _EPOCH + self.capture_time_ms * _MILLISECOND

    def _fields(self) -> Tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._compared)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.ordinal, self.id))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Document({fields})"


def make_document(message: Any, _new: Any = object.__new__) -> Document:
    """Copies a message Document."""
    document: Document = _new(Document)
    span = message.range
    document.ordinal = message.ordinal
    document.id = message.id
    document.offset = span.offset
    document.size = span.size_bytes
    time = message.capture_time_ms
    document.capture_time_ms = (
        time if time or message.HasField("capture_time_ms") else None)
    document.media_type = message.media_type or None
    document.record_type = message.record_type or None
    document.fields = _NO_FIELDS
    return document


class Capture(NamedTuple):
    """A record of a crawl, as the index of captures has it."""

    # Of its URL, such as "com,example)/a".
    key: str
    # As the record states it; bytes that are not UTF-8 become surrogates.
    url: str
    document: Document
    # Of HTTP; None if it has none.
    status: Optional[int]
    # Of the payload as the record states it, such as "sha1:..."; None if it does not.
    digest: Optional[str]


def make_capture(message: Any) -> Capture:
    """Copies a message Capture."""
    return Capture(_to_text(message.key), _to_text(message.url), make_document(message.document),
                   message.status if message.HasField("status") else None,
                   _to_text(message.digest) if message.HasField("digest") else None)


def _to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def field_value(message: Any) -> FieldValue:
    """The value of a message FieldValue."""
    kind = message.WhichOneof("value")
    if kind is None:
        return None
    if kind == "string_value":
        return str(message.string_value, "utf-8", "surrogateescape")
    if kind == "time_us":
        try:
            return _EPOCH + datetime.timedelta(microseconds=message.time_us)
        except OverflowError:
            return int(message.time_us)
    value: FieldValue = getattr(message, kind)
    return value


@dataclasses.dataclass
class WithdrawnCount:
    """Number of documents that a stream of documents has left out."""

    count: int = 0


class Prefix(NamedTuple):
    """A common prefix of ids, in a listing by levels."""

    id: bytes

    @property
    def name(self) -> str:
        """The prefix as text; bytes that are not UTF-8 become surrogates."""
        return self.id.decode("utf-8", "surrogateescape")


@dataclasses.dataclass(frozen=True)
class ArchiveInfo:
    """Description of an archive."""

    name: str
    # Equal archives have equal uuids.
    uuid: str
    # Bytes of all documents.
    size: int
    # Bytes of all files on the server's disk.
    stored_size: int
    document_count: int
    codec: str
    # None: blocks need no dictionary.
    dictionary_hash: Optional[str]
    dictionary_size: int
    # False: the server is still opening it, or opens it on first use.
    is_open: bool
    # Names and types of fields: "string", "integer", "float", "boolean" or "time". Only from
    # info().
    fields: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)
    # Captures in the index that captures() reads; None: there is none. Only from info().
    capture_count: Optional[int] = dataclasses.field(default=None, compare=False)


def make_info(message: Any) -> ArchiveInfo:
    """Copies a message ArchiveDescription."""
    return ArchiveInfo(
        name=message.name, uuid=message.uuid, size=message.size_bytes,
        stored_size=message.stored_size_bytes, document_count=message.document_count,
        codec=message.codec, dictionary_hash=message.dictionary_hash or None,
        dictionary_size=message.dictionary_size_bytes,
        # ARCHIVE_STATE_OPENING and ARCHIVE_STATE_CLOSED.
        is_open=message.state not in (2, 3),
        fields={field.name: _FIELD_TYPES.get(field.type, str(field.type))
                for field in message.fields},
        capture_count=message.capture_count if message.HasField("capture_count") else None)


class Answer:
    """The answer to one key of get_many()."""

    __slots__ = ("key", "document", "error", "_data")

    def __init__(self, key: AnyKey, document: Optional[Document], data: bytes,
                 error: Optional[QuireError] = None) -> None:
        # As it was given.
        self.key = key
        # None for a Span, and if there is an error.
        self.document = document
        # None if the read succeeded.
        self.error = error
        self._data = data

    @property
    def data(self) -> bytes:
        """The bytes. Raises `error` if there is one."""
        if self.error is not None:
            raise self.error
        return self._data

    def __repr__(self) -> str:
        what = f"{len(self._data)} bytes" if self.error is None else repr(self.error)
        return f"Answer({self.key!r}: {what})"


Headers = List[Tuple[str, str]]


def header(fields: Headers, name: str) -> str:
    """The first value of a header field that is not empty; "" without one."""
    for field, value in fields:
        if value and field.lower() == name.lower():
            return value
    return ""


@dataclasses.dataclass
class Payload:
    """A page of a crawl as a browser would have received it."""

    # The document with the payload.
    document: Document
    # Without headers, chunks and content coding.
    data: bytes
    # The revisit record that refers to `document`, if one was followed.
    revisit: Optional[Document] = None
    # Not empty: the newest capture is a revisit of a record that the archive does
    # not have, as this text says; `document` is then the newest that it has.
    unresolved: str = ""
    # Newer captures that were passed, as they are no pages: redirects, and answers to HEAD.
    passed_count: int = 0
    # Header of the WARC record, or what that of an ARC record is in a WARC; None if the
    # document is not from a crawl.
    warc_headers: Optional[Headers] = None
    # Status and headers of the HTTP response; None if the record has no HTTP header.
    http_status: Optional[int] = None
    http_headers: Optional[Headers] = None


_ZONE = r"(?:[Zz]|([+-](?:[01]\d|2[0-3]))(?::?([0-5]\d))?)?"
_TIME = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?"
    + _ZONE + r")?)?)?"
    r"|(\d{4})(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?" + _ZONE + r")?)?", re.ASCII)


def parse_period(text: str) -> Tuple[int, int]:
    """First and last millisecond of a year, month, day, hour, minute, second or moment."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("a time must look like 2022, 2022-06, 2022-06-15, "
                         "2022-06-15T12:30Z, 2022-06-15T12:30:45Z, "
                         "2022-06-15T14:30:45+02:00 or 20220615123045, in UTC if it has no "
                         f"offset, got {text!r}")
    groups = match.groups()
    fraction = groups[6]
    parts = [int(part) for part in (groups[:6] if groups[0] else groups[9:15]) if part]
    zone_ms = _zone_ms(*(groups[7:9] if groups[0] else groups[15:]))
    padded = parts + [1970, 1, 1, 0, 0, 0][len(parts):]
    try:
        year, month, day, hour, minute, second = padded
        first = datetime.datetime(year, month, day, hour, minute, second,
                                  tzinfo=datetime.timezone.utc)
    except ValueError:
        raise ValueError(f"there is no such date and time as {text!r}") from None
    begin = (first - _EPOCH) // _MILLISECOND - zone_ms
    if fraction:
        digits = fraction[:3]
        begin += int(digits.ljust(3, "0"))
        return begin, begin + 10 ** (3 - len(digits)) - 1
    try:
        end = _next(first, len(parts))
    except (ValueError, OverflowError):
        # The year 10000.
        return begin, (datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)
                       - _EPOCH) // _MILLISECOND - zone_ms
    return begin, (end - _EPOCH) // _MILLISECOND - zone_ms - 1


def _zone_ms(hours: Optional[str], minutes: Optional[str]) -> int:
    """Of an offset such as "-01", "30": local time minus UTC."""
    if hours is None:
        return 0
    size = int(hours[1:]) * 60 + int(minutes or "0")
    return (-size if hours[0] == "-" else size) * 60_000


def _next(first: datetime.datetime, unit: int) -> datetime.datetime:
    """The start of the next year (unit 1), month (2), ... second (6)."""
    if unit == 1:
        return first.replace(year=first.year + 1)
    if unit == 2:
        return (first + datetime.timedelta(days=31)).replace(day=1)
    return first + [datetime.timedelta(days=1), datetime.timedelta(hours=1),
                    datetime.timedelta(minutes=1), datetime.timedelta(seconds=1)][unit - 3]


def to_milliseconds(time: Time) -> int:
    """The last millisecond of `time`, since 1970."""
    if isinstance(time, str):
        return parse_period(time)[1]
    if isinstance(time, datetime.datetime):
        if time.tzinfo is None:
            time = time.replace(tzinfo=datetime.timezone.utc)
        return (time - _EPOCH) // _MILLISECOND
    if abs(time) > _INT64_MAX:
        raise ValueError(f"a time must fit in 64 bits, got {time}")
    return time


def to_first_millisecond(time: Time) -> int:
    """The first millisecond of `time`, since 1970."""
    return parse_period(time)[0] if isinstance(time, str) else to_milliseconds(time)


class Target(NamedTuple):
    """A key, as requests and checks need it."""

    key: AnyKey
    # An id, an ordinal, or None: bytes of the archive.
    name: Union[bytes, int, None]
    # Range of the document, or of the archive; None: the whole document.
    part: Optional[Tuple[int, int]]


def to_id(name: Union[bytes, bytearray, str]) -> bytes:
    """Bytes of an id."""
    return name.encode("utf-8", "surrogateescape") if isinstance(name, str) else bytes(name)


def _checked(what: str, number: int) -> int:
    if isinstance(number, bool) or not 0 <= number < 2**64:
        raise ValueError(f"{what} must be 0 to 2^64 - 1, got {number}")
    return number


def resolve(key: AnyKey) -> Target:
    """Raises TypeError if `key` is none, or has a part of another type."""
    if isinstance(key, str):
        return Target(key, key.encode("utf-8", "surrogateescape"), None)
    if isinstance(key, (bytes, bytearray)):
        return Target(key, to_id(key), None)
    if isinstance(key, int):
        return Target(key, _checked("an ordinal", key), None)
    if isinstance(key, Span):
        return Target(key, None, key)
    named: Any = key
    if isinstance(key, Key):
        named = key.name
    if isinstance(key, Key) and isinstance(named, (str, bytes, bytearray, int)):
        if isinstance(key.record_types, (str, bytes, bytearray)):
            raise TypeError(f"record_types must be a list of names, got {key.record_types!r}")
        name = _checked("an ordinal", named) if isinstance(named, int) else to_id(named)
        part = key.range
        if part is not None and not (isinstance(part, (tuple, list)) and len(part) == 2):
            raise TypeError(f"a range must be (offset, size), got {part!r}")
        return Target(key, name, part)
    hint = "; pass its ordinal" if isinstance(named, Document) else ""
    raise TypeError(
        f"a key must be str, bytes, int, Key or Span, got {type(named).__name__}{hint}")


def fill(target: Target, message: Any) -> None:
    """Sets `range` or `document` of a ReadRequest or a BatchItem."""
    name, part = target.name, target.part
    if name is None:
        assert part is not None
        fill_range(part, message.range)
        return
    document = message.document
    if isinstance(name, int):
        document.ordinal = name
    else:
        document.id = name
    if part is not None:
        fill_range(part, document.range)
    if isinstance(target.key, Key):
        key = target.key
        if key.at is not None:
            document.at_time_ms = to_milliseconds(key.at)
        if key.occurrence is not None:
            document.occurrence = _checked("an occurrence", key.occurrence)
        if key.record_types is not None:
            document.record_types.extend(key.record_types)
        document.with_revisits = key.with_revisits


def checked_range(part: Tuple[int, int], what: str = "a range") -> Tuple[int, int]:
    """(offset, size) as ints; raises TypeError or ValueError, which names `what`."""
    try:
        offset, size = map(operator.index, part)
    except TypeError:
        raise TypeError(f"{what} must be (offset, size), both int, got {tuple(part)!r}") from None
    if not (0 <= offset < 2**64 and 0 <= size < 2**64):
        raise ValueError(f"{what} must be (offset, size), both 0 to 2^64 - 1, "
                         f"got {tuple(part)!r}")
    return offset, size


def fill_range(part: Tuple[int, int], message: Any) -> None:
    """Sets a ByteRange. Errors: as checked_range()."""
    message.offset, message.size_bytes = checked_range(part)
