# SPDX-License-Identifier: Apache-2.0
"""Captures of a crawl, as lines of a CDXJ index over its logical space.

A line has the keys of cdxj-indexer: SURT of the URL, time, then url, mime, status,
digest, length, offset and filename as JSON. Indexed are responses, revisits, resources
and conversions that have a capture time. The digest is the record's WARC-Payload-Digest;
a record without one has none here. That of a record of an ARC file is computed, for which all
of it is read.

Captures are those of the index in the archive, where it has one: answers to requests of other
methods than GET then have the method and what was sent in their keys, as of cdxj-indexer -p.
Of an archive without, the heads of the records are read, and answers to all methods have
the keys of their URLs.

Needs the module surt (extra `web`).
"""
from __future__ import annotations

import base64
import collections
import datetime
import hashlib
import heapq
import itertools
import re
import tempfile
import warnings
from json.encoder import encode_basestring_ascii as quote_json
from typing import IO, Any, Callable, Deque, Dict, Iterable, Iterator, List, NamedTuple, Optional

from surt import surt

from .client import Archive
from .errors import CapturesNotIndexed, MalformedRequest, QuireError
from .records import Capture as IndexedCapture
from .records import Document, Span, WithdrawnCount

INDEXED_TYPES = frozenset(("response", "revisit", "resource", "conversion"))
# Size of what is read of each record first. Longer headers are read again.
HEAD_SIZE = 2 << 10
# Bound on the header of a record, as of quired build.
HEADER_SIZE_MAX = 1 << 20
# Of a record of an ARC file, whose digest needs all of it.
_ARC_HEAD_SIZE = 256 << 10
_LONG_HEAD_SIZES = (16 << 10, 128 << 10, HEADER_SIZE_MAX + 64)
# Size of lines sorted in memory; more are sorted in temporary files.
SORT_SIZE_MAX = 64 << 20
# So many files of one size are merged into one: a process may have few files open.
_MERGED_COUNT = 64
# Captures of the index in the archive that are held at a time.
_INDEXED_COUNT = 10_000
# In keys of answers to requests of other methods than GET.
_METHOD_ARGUMENT = "__wb_method="

_DIGEST = re.compile(rb"\nwarc-payload-digest[ \t]*:[ \t]*([!-~]+)", re.IGNORECASE)
# As most write it: found many times as fast.
_USUAL_DIGEST = b"\nWARC-Payload-Digest: "
# Some servers sent an empty line first.
_STATUS = re.compile(rb"(?:\r?\n){0,32}HTTP/\d+(?:\.\d+)?[ \t]+(\d{3})(?!\d)")
_HTTP_START = re.compile(rb"(?:\r?\n){0,32}HTTP/")
_HEADER_END = re.compile(rb"\n\r?\n")
# Bytes of a block that decide if it has a status.
_STATUS_SIZE = 80
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_DAY_SECONDS = 86_400
# Years 1 to 9999.
_TIME_MS_MIN = (1 - _EPOCH_DAY) * _DAY_SECONDS * 1000
_TIME_MS_END = (datetime.date.max.toordinal() + 1 - _EPOCH_DAY) * _DAY_SECONDS * 1000


# --- Keys.

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# URLs that need no more than what surt_key() does with them.
_PLAIN_URL = re.compile(
    rf"https?://(?:www[0-9]*\.)?((?:{_LABEL}\.)*[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?)"
    r"((?:/(?![./])[A-Za-z0-9_~,:@+!*'$&=.-]+)*)/?(?:\?([A-Za-z0-9_.~,:@+!*/=&-]*))?", re.ASCII)
_NOT_PRINTABLE = re.compile(r"[^!-~]")
_SESSION = re.compile(r"sid|session|cfid|cftoken", re.IGNORECASE)


def surt_key(url: str) -> str:
    """The key of a URL: that of surt(), many times as fast for plain URLs."""
    match = _PLAIN_URL.fullmatch(url)
    if match is None:
        return _general_key(url)
    host, path, query = match.groups()
    if "." in host:
        host = ",".join(host.split(".")[::-1])
    key = f"{host}){path.lower() or '/'}"
    if not query:
        return key
    if _SESSION.search(query):
        return _general_key(url)
    query = query.lower()
    if "&" in query:
        query = "&".join("=".join(part) for part in sorted(
            part.split("=", 1) for part in query.split("&")))
    return f"{key}?{query}"


def _general_key(url: str) -> str:
    try:
        key: str = surt(url)
    except Exception:  # pylint: disable=broad-except
        # It raises various errors for what is not a URL.
        key = url
    return _NOT_PRINTABLE.sub(_escape, key)


def _escape(match: "re.Match[str]") -> str:
    return "".join(f"%{byte:02x}" for byte in match.group().encode("utf-8", "surrogateescape"))


_day_texts: Dict[int, str] = {}


def timestamp(capture_time_ms: int) -> str:
    """14 digits in UTC. REQUIRES: is_indexed()."""
    day, second = divmod(capture_time_ms // 1000, _DAY_SECONDS)
    text = _day_texts.get(day)
    if text is None:
        date = datetime.date.fromordinal(_EPOCH_DAY + day)
        if len(_day_texts) >= 100_000:
            _day_texts.clear()
        text = _day_texts[day] = f"{date.year:04}{date.month:02}{date.day:02}"
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{text}{hour:02}{minute:02}{second:02}"


# --- Captures.

class Capture(NamedTuple):
    """A record that the index names."""

    document: Document
    # 14 digits.
    time: str
    # None: the record has none.
    media_type: Optional[str]
    status: Optional[str]
    digest: Optional[str]
    # True for a record of an ARC file.
    is_arc: bool
    # Of the index in the archive; None: those of the document's id.
    indexed_key: Optional[str] = None
    indexed_url: Optional[str] = None

    @property
    def url(self) -> str:
        """As the record states it."""
        return self.document.name if self.indexed_url is None else self.indexed_url

    @property
    def is_get(self) -> bool:
        """False for an answer to a request of another method, if the archive has an index."""
        return self.indexed_key is None or _METHOD_ARGUMENT not in self.indexed_key

    def line(self, file_name: str) -> str:
        """The line of the index, with its end."""
        document = self.document
        url = self.url
        key = surt_key(url) if self.indexed_key is None else self.indexed_key
        fields = f'{{"url": {quote_json(url)}'
        if self.media_type:
            fields += f', "mime": {quote_json(self.media_type)}'
        if self.status:
            fields += f', "status": "{self.status}"'
        if self.digest:
            fields += f', "digest": {quote_json(self.digest)}'
        return (f'{key} {self.time} {fields}, "length": "{document.size}", '
                f'"offset": "{document.offset}", "filename": {quote_json(file_name)}}}\n')


def is_indexed(document: Document) -> bool:
    """True for a record that is a capture."""
    time = document.capture_time_ms
    return (document.record_type in INDEXED_TYPES and time is not None
            and _TIME_MS_MIN <= time < _TIME_MS_END)


def _header_size(head: bytes) -> int:
    """Size of a WARC header with the empty line that ends it; 0 if it does not end."""
    end = head.find(b"\n\r\n")
    bare = head.find(b"\n\n", 0, end if end >= 0 else len(head))
    return bare + 2 if bare >= 0 else end + 3 if end >= 0 else 0


def make_capture(document: Document, head: bytes) -> Optional[Capture]:
    """The capture whose record begins with `head`; None if more of it is needed.

    REQUIRES: is_indexed(document).
    """
    kind = document.record_type
    is_arc = head[:5].upper() != b"WARC/"
    block = head.find(b"\n") + 1 if is_arc else _header_size(head)
    if not block or (len(head) < block + _STATUS_SIZE and len(head) < document.size):
        return None
    assert document.capture_time_ms is not None
    usual = max(0, head.find(_USUAL_DIGEST, 0, block))
    digest = None if is_arc else _DIGEST.search(head, usual, block)
    status = _STATUS.match(head, block) if kind in ("response", "revisit") else None
    return Capture(document, timestamp(document.capture_time_ms),
                   "warc/revisit" if kind == "revisit" else document.media_type,
                   status and status.group(1).decode(), digest and digest.group(1).decode(),
                   is_arc)


class Malformed(ValueError):
    """A record without the end of its header."""

    def __init__(self, document: Document) -> None:
        super().__init__(f"record {document.ordinal} ({document.name!r}): its header must end "
                         "within 1 MiB and does not; the archive is not of a crawl, or damaged")


def list_documents(archive: Archive, withdrawn: WithdrawnCount) -> Iterator[Document]:
    """The documents of a pinned archive, in its order; counts those that are withdrawn."""
    listed_count = 0
    for document in archive:
        listed_count += 1
        yield document
    withdrawn.count += len(archive) - listed_count


def withdrawn_note(withdrawn: WithdrawnCount) -> str:
    """For messages, as `quire export` prints it; empty if there are none."""
    count = withdrawn.count
    return f"; {count} document{' is' if count == 1 else 's are'} withdrawn" if count else ""


def has_index(archive: Archive) -> bool:
    """True if the index in the archive has all its captures."""
    with warnings.catch_warnings(record=True) as missing:
        warnings.simplefilter("always")
        try:
            next(archive.captures(), None)
        except (CapturesNotIndexed, MalformedRequest):
            # An earlier server does not list all keys.
            return False
    return not missing


def read_index(archive: Archive) -> Iterator[Capture]:
    """The captures of an archive by the index in it, in any order.

    Reads the heads of responses without a digest, which may be of an ARC file.
    REQUIRES: has_index(archive), which is pinned. Raises as read_captures().
    """
    found = archive.captures()
    while chunk := list(itertools.islice(found, _INDEXED_COUNT)):
        by_ordinal: Dict[int, IndexedCapture] = {}
        for each in chunk:
            if not is_indexed(each.document):
                continue
            if each.digest is None and each.document.record_type == "response":
                by_ordinal[each.document.ordinal] = each
            else:
                yield _of_index(each)
        for capture in _read_heads(archive, (each.document for each in by_ordinal.values()),
                                   WithdrawnCount()):
            of_index = by_ordinal[capture.document.ordinal]
            yield _of_index(of_index)._replace(digest=capture.digest, is_arc=capture.is_arc)


def _of_index(found: IndexedCapture) -> Capture:
    document = found.document
    assert document.capture_time_ms is not None
    return Capture(document, timestamp(document.capture_time_ms),
                   "warc/revisit" if document.record_type == "revisit" else document.media_type,
                   None if found.status is None else f"{found.status:03}", found.digest, False,
                   found.key, found.url)


def read_captures(archive: Archive, withdrawn: WithdrawnCount) -> Iterator[Capture]:
    """The captures of an archive, in its order. Reads the heads of their records in batches.

    Counts the withdrawn documents, which are left out. REQUIRES: the archive is pinned.
    Raises QuireError, naming the record, if one cannot be read.
    """
    return _read_heads(archive, filter(is_indexed, list_documents(archive, withdrawn)), withdrawn)


def _read_heads(archive: Archive, documents: Iterable[Document],
                withdrawn: WithdrawnCount) -> Iterator[Capture]:
    """The captures of documents, in their order, from the heads of their records."""
    wanted: Deque[Document] = collections.deque()
    head_size = HEAD_SIZE

    def spans() -> Iterator[Span]:
        for document in documents:
            wanted.append(document)
            yield Span(document.offset, min(document.size, head_size))

    for answer in archive.get_many(spans()):
        document = wanted.popleft()
        # Withdrawn after it was listed: the span has zeros.
        if answer.error is None and answer.data and not any(answer.data) \
                and document.ordinal not in archive:
            withdrawn.count += 1
            continue
        if answer.error is not None:
            raise QuireError(f"record {document.ordinal} ({document.name!r}): {answer.error}",
                             code=answer.error.code, reason=answer.error.reason)
        capture = make_capture(document, answer.data)
        for size in _LONG_HEAD_SIZES:
            if capture is not None:
                break
            capture = make_capture(
                document, archive.read_range(document.offset, min(document.size, size)))
        if capture is None:
            raise Malformed(document)
        if capture.is_arc:
            head_size = _ARC_HEAD_SIZE
            capture = _with_digest(archive, capture, answer.data)
        yield capture


def _with_digest(archive: Archive, capture: Capture, head: bytes) -> Capture:
    """A capture of an ARC file with its digest."""
    document = capture.document
    if document.record_type != "response":
        return capture
    pieces = iter([head]) if len(head) >= document.size \
        else archive.stream_range(document.offset, document.size)
    return capture._replace(digest=arc_digest(pieces))


def arc_digest(pieces: Iterator[bytes]) -> str:
    """The WARC-Payload-Digest of a record of an ARC file, as warcio computes it.

    REQUIRES: the pieces are the record, which begins with the line of an ARC file.
    """
    head = b""
    start = None
    for piece in pieces:
        head += piece
        start = _arc_payload_start(head)
        if start is not None or len(head) > HEADER_SIZE_MAX:
            break
    line_end = head.find(b"\n") + 1
    end = line_end + int(head[:line_end].rsplit(b" ", 1)[-1])
    if start is None:
        # The HTTP header does not end.
        start = end if _HTTP_START.match(head, line_end) else line_end
    sha1 = hashlib.sha1(head[start:end])
    at = len(head)
    for piece in pieces:
        sha1.update(piece[:max(0, end - at)])
        at += len(piece)
    return f"sha1:{base64.b32encode(sha1.digest()).decode()}"


def _arc_payload_start(head: bytes) -> Optional[int]:
    """Offset of the payload of a record that begins so; None if more bytes decide that."""
    block = head.find(b"\n") + 1
    if not block:
        return None
    http = _HTTP_START.match(head, block)
    if http is None:
        return block if len(head) >= block + _STATUS_SIZE else None
    end = _HEADER_END.search(head, http.end())
    return end and end.end()


# --- Sorting.

class LineSorter:
    """Sorts lines by their bytes, in temporary files once there are many.

    A context manager, which removes the files. Thread-compatible.
    """

    def __init__(self, size_max: int = SORT_SIZE_MAX) -> None:
        self._size_max = size_max
        self._lines: List[bytes] = []
        self._size = 0
        # Sorted files of lines; those at an index are merged into one at the next.
        self._files: List[List[IO[bytes]]] = []

    def __enter__(self) -> "LineSorter":
        return self

    def __exit__(self, *_: object) -> None:
        for file in itertools.chain(*self._files):
            file.close()

    def add(self, line: bytes) -> None:
        """Adds a line, with its end."""
        self._lines.append(line)
        self._size += len(line)
        if self._size > self._size_max:
            self._spill()

    def sorted(self) -> Iterator[bytes]:
        """All lines, once."""
        self._lines.sort()
        return heapq.merge(*map(_rewound, itertools.chain(*self._files)), self._lines)

    def _spill(self) -> None:
        self._lines.sort()
        self._add_file(0, self._lines)
        self._lines = []
        self._size = 0

    def _add_file(self, level: int, lines: Iterable[bytes]) -> None:
        if level == len(self._files):
            self._files.append([])
        files = self._files[level]
        file = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        files.append(file)
        file.writelines(lines)
        if len(files) == _MERGED_COUNT:
            self._add_file(level + 1, heapq.merge(*map(_rewound, files)))
            while files:
                files.pop().close()


def _rewound(file: IO[bytes]) -> IO[bytes]:
    file.seek(0)
    return file


def write_index(captures: Iterable[Capture], file_name: str,
                write: Callable[[bytes], Any]) -> int:
    """Writes the sorted index of `captures`; returns their number."""
    count = 0
    with LineSorter() as sorter:
        for capture in captures:
            sorter.add(capture.line(file_name).encode())
            count += 1
        lines = sorter.sorted()
        while block := b"".join(itertools.islice(lines, 1000)):
            write(block)
    return count
