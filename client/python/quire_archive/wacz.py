# SPDX-License-Identifier: Apache-2.0
"""A WACZ of an archive, of which only the WARC is not written: it is the archive's
logical space, which `quire-http --files DIR` inserts.

DIR gets three files: what precedes the WARC in the zip, what follows it, and a
description of the pieces, NAME.pieces.json. All members are stored, so that readers
find them with ranges; sizes over 4 GiB use zip64.
"""
from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import math
import os
import re
import shutil
import struct
import tempfile
import zlib
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ._program import replaced_file
from .captures import (HEADER_SIZE_MAX, Capture, LineSorter, Malformed, has_index, is_indexed,
                       list_documents, make_capture, read_index, write_index)
from .client import Archive
from .records import ArchiveInfo, Document, WithdrawnCount

WARC_NAME = "space.warc"
WACZ_VERSION = "1.1.1"
# Lines of the index in one part of it. replayweb.page stores the index of the parts when it
# opens the WACZ, and all lines of some parts for each URL: both cost, so the size of a
# part grows with the square root of the number of lines.
_PART_LINES_MIN, _PART_LINES_MAX = 256, 2048
# Pages in the first list, which replayweb.page stores before it shows anything. Others are in
# a second list, which it reads for searches.
_FIRST_PAGES_MAX = 1000
_HEAD_SIZE = 16 << 10
_PIECE_NAME = re.compile(r"\.[A-Za-z0-9._-]{1,250}")
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_DESCRIPTION_SIZE_MAX = 64 << 10
_WARC_START = b"WARC/"


# --- Zip.

class Member(NamedTuple):
    """A stored member of a zip."""

    name: str
    size: int
    crc: int
    sha256: str


_UINT32_MAX = 0xFFFFFFFF
# 1980-01-01 00:00, the first time that a zip can state.
_DOS_TIME, _DOS_DATE = 0, (1 << 5) | 1
_VERSION_ZIP64 = 45
_VERSION_PLAIN = 20


def _extra_field(*values: int) -> bytes:
    """The zip64 field of values that do not fit in 32 bits."""
    large = [value for value in values if value >= _UINT32_MAX]
    return struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""


def local_header(member: Member) -> bytes:
    """What precedes the bytes of a member."""
    name = member.name.encode("ascii")
    extra = _extra_field(member.size, member.size)
    size = min(member.size, _UINT32_MAX)
    return struct.pack("<IHHHHHIIIHH", 0x04034B50, _VERSION_ZIP64 if extra else _VERSION_PLAIN, 0,
                       0, _DOS_TIME, _DOS_DATE, member.crc, size, size, len(name),
                       len(extra)) + name + extra


def central_directory(members: List[Member], start: int = 0) -> bytes:
    """What follows all members, which begin at offset `start` of the file."""
    records = []
    offset = start
    for member in members:
        name = member.name.encode("ascii")
        extra = _extra_field(member.size, member.size, offset)
        size = min(member.size, _UINT32_MAX)
        version = _VERSION_ZIP64 if extra else _VERSION_PLAIN
        # Made by Unix; a regular file of mode 644.
        records.append(struct.pack(
            "<IHHHHHHIIIHHHHHII", 0x02014B50, 3 << 8 | version, version, 0, 0, _DOS_TIME,
            _DOS_DATE, member.crc, size, size, len(name), len(extra), 0, 0, 0, 0o100644 << 16,
            min(offset, _UINT32_MAX)) + name + extra)
        offset += len(local_header(member)) + member.size
    directory = b"".join(records)
    count, size = len(members), len(directory)
    end = b""
    if offset >= _UINT32_MAX:
        end = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 3 << 8 | _VERSION_ZIP64, _VERSION_ZIP64,
                          0, 0, count, count, size, offset)
        end += struct.pack("<IIQI", 0x07064B50, 0, offset + size, 1)
    return directory + end + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, size,
                                         min(offset, _UINT32_MAX), 0)


# --- The scan.

class _Space:
    """Reads the logical space once, in order, and sums it up."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")
        self._sha256 = hashlib.sha256()
        self._crc = 0
        self.offset = 0

    def take(self, size: int) -> bytes:
        """The next bytes. REQUIRES: that many are left."""
        parts = []
        while size:
            part = self._next(size)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def skip_to(self, offset: int) -> None:
        """Passes over bytes."""
        while self.offset < offset:
            self._next(offset - self.offset)

    def member(self, name: str) -> Member:
        """Of all that was read."""
        return Member(name, self.offset, self._crc, self._sha256.hexdigest())

    def _next(self, size: int) -> memoryview:
        if not self._piece:
            piece = next(self._pieces)
            self._sha256.update(piece)
            self._crc = zlib.crc32(piece, self._crc)
            self._piece = memoryview(piece)
        part = self._piece[:size]
        self._piece = self._piece[len(part):]
        self.offset += len(part)
        return part


def _scan(archive: Archive, space: _Space, withdrawn: WithdrawnCount) -> Iterator[Capture]:
    """The captures, in the archive's order; counts the documents that are withdrawn."""
    for document in list_documents(archive, withdrawn):
        space.skip_to(document.offset)
        if not is_indexed(document):
            continue
        head, capture, size = b"", None, _HEAD_SIZE
        while capture is None:
            more = min(size, document.size) - len(head)
            if more <= 0 or len(head) > HEADER_SIZE_MAX:
                raise Malformed(document)
            head += space.take(more)
            capture = make_capture(document, head)
            size *= 2
        yield capture


def _pass_over(archive: Archive, space: _Space, withdrawn: WithdrawnCount) -> None:
    """Reads as _scan(), without making captures."""
    for document in list_documents(archive, withdrawn):
        space.skip_to(document.offset)
        if is_indexed(document):
            start = space.take(min(len(_WARC_START), document.size))
            if start.upper() != _WARC_START:
                raise _of_arc(document)


# --- Members.

def _sum_up(file: IO[bytes], name: str) -> Member:
    """The member with the contents of a file; leaves it at its start."""
    sha256, crc, size = hashlib.sha256(), 0, 0
    file.seek(0)
    while piece := file.read(1 << 20):
        sha256.update(piece)
        crc = zlib.crc32(piece, crc)
        size += len(piece)
    file.seek(0)
    return Member(name, size, crc, sha256.hexdigest())


class _IndexWriter:
    """A ZipNum index: parts of sorted lines in gzip, and a line for each of them."""

    def __init__(self, data: IO[bytes], index: IO[bytes], data_name: str,
                 part_lines: int) -> None:
        self._data = data
        self._index = index
        self._part_lines = part_lines
        self._lines: List[bytes] = []
        self._rest = b""
        self._offset = 0
        meta = json.dumps({"format": "cdxj-gzip-1.0", "filename": data_name})
        index.write(f"!meta 0 {meta}\n".encode())

    def write(self, block: bytes) -> None:
        """Adds lines."""
        for line in block.splitlines(keepends=True):
            self._lines.append(line)
            if len(self._lines) == self._part_lines:
                self.flush()

    def flush(self) -> None:
        """Ends a part."""
        if not self._lines:
            return
        coder = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
        part = coder.compress(b"".join(self._lines)) + coder.flush()
        where = json.dumps({"offset": self._offset, "length": len(part),
                            "digest": f"sha256:{hashlib.sha256(part).hexdigest()}"})
        self._index.write(self._lines[0].partition(b"{")[0] + where.encode() + b"\n")
        self._data.write(part)
        self._offset += len(part)
        self._lines = []


class _PagesWriter:
    """Two lists of the pages, in the archive's order: the first ones, and further ones."""

    def __init__(self, first: IO[bytes], further: IO[bytes], sorter: LineSorter) -> None:
        self._lists = (first, further)
        self._sorter = sorter
        self._count = 0
        for file, title in ((first, "All Pages"), (further, "Further Pages")):
            header = {"format": "json-pages-1.0", "id": "pages", "title": title}
            file.write(json.dumps(header).encode() + b"\n")

    @property
    def has_further(self) -> bool:
        """True if the second list is not empty."""
        return self._count > _FIRST_PAGES_MAX

    def passed(self, captures: Iterator[Capture]) -> Iterator[Capture]:
        """Passes captures on; notes those of pages."""
        for capture in captures:
            if capture.status == "200" and capture.media_type in _PAGE_TYPES and capture.is_get:
                self._sorter.add(b"%020d %s %s\n" % (
                    capture.document.ordinal, capture.time.encode(),
                    json.dumps(capture.url).encode()))
            yield capture

    def write(self) -> None:
        """Writes the lists, once, after all captures."""
        for line in self._sorter.sorted():
            _, time, url = line.decode().split(" ", 2)
            self._count += 1
            page = {"id": f"page-{self._count}", "url": json.loads(url),
                    "ts": f"{time[:4]}-{time[4:6]}-{time[6:8]}T{time[8:10]}:{time[10:12]}:"
                    f"{time[12:]}Z"}
            self._lists[self.has_further].write(json.dumps(page).encode() + b"\n")


def _data_package(members: List[Member], info: ArchiveInfo, created: datetime.datetime,
                  title: Optional[str]) -> bytes:
    # Names of resources have no capitals.
    resources = [{"name": member.name.rpartition("/")[2].lower(), "path": member.name,
                  "hash": f"sha256:{member.sha256}", "bytes": member.size} for member in members]
    package: Dict[str, Any] = {
        "profile": "data-package", "wacz_version": WACZ_VERSION, "title": title or info.name,
        "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "software": "quire-web 0.1.0", "resources": resources}
    return json.dumps(package, indent=2).encode() + b"\n"


class Written(NamedTuple):
    """What write_wacz() wrote."""

    path: str
    capture_count: int
    # Bytes of the whole WACZ, and of the files that were written.
    size: int
    written_size: int
    # In the WARC they are zeros.
    withdrawn: WithdrawnCount
    # False: answers to requests of any method have the key of their URL.
    is_indexed: bool


def write_wacz(archive: Archive, directory: str, name: str,
               title: Optional[str] = None) -> Written:
    """Writes the WACZ `name` of an archive into a directory, for quire-http --files.

    Reads the archive once. A WACZ of that name is replaced; its old pieces are removed.
    Raises ValueError for an archive without captures, and if it was built from ARC files.
    """
    info = archive.info()
    archive = archive.client.archive(info.name, info.uuid)
    with contextlib.ExitStack() as stack:
        data, index, first, further, package, digest = (
            stack.enter_context(tempfile.TemporaryFile(dir=directory)) for _ in range(6))
        space = _Space(archive.stream_range(0, info.size))
        part_lines = math.isqrt(info.document_count)
        writer = _IndexWriter(data, index, "index.cdx.gz",
                              max(_PART_LINES_MIN, min(part_lines, _PART_LINES_MAX)))
        pages = _PagesWriter(first, further, stack.enter_context(LineSorter()))
        withdrawn = WithdrawnCount()
        from_index = has_index(archive)
        if from_index:
            _pass_over(archive, space, withdrawn)
            captures = read_index(archive)
        else:
            captures = _check_warc(_scan(archive, space, withdrawn))
        count = write_index(pages.passed(captures), WARC_NAME, writer.write)
        writer.flush()
        pages.write()
        space.skip_to(info.size)
        if not count:
            raise ValueError(f"archive {info.name} has no captures: no response, revisit, "
                             "resource or conversion with a time")
        contents = {"indexes/index.cdx.gz": data, "indexes/index.idx": index,
                    "pages/pages.jsonl": first}
        if pages.has_further:
            contents["pages/extraPages.jsonl"] = further
        members = [_sum_up(file, path) for path, file in contents.items()]
        warc = space.member(f"archive/{WARC_NAME}")
        package.write(_data_package([*members, warc], info, _now(), title))
        members.append(_sum_up(package, "datapackage.json"))
        digest.write(json.dumps({"path": "datapackage.json",
                                 "hash": f"sha256:{members[-1].sha256}"}).encode() + b"\n")
        members.append(_sum_up(digest, "datapackage-digest.json"))
        path, written = _write_pieces(directory, name, info, members,
                                      [*contents.values(), package, digest], warc)
        return Written(path, count, written + warc.size, written, withdrawn, from_index)


def _check_warc(captures: Iterator[Capture]) -> Iterator[Capture]:
    for capture in captures:
        if capture.is_arc:
            raise _of_arc(capture.document)
        yield capture


def _of_arc(document: Document) -> ValueError:
    return ValueError(f"record {document.ordinal} comes from an ARC file; a WACZ holds WARC files "
                      "only")


def _now() -> datetime.datetime:
    """The time that the WACZ states; SOURCE_DATE_EPOCH makes it reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    zone = datetime.timezone.utc
    return (datetime.datetime.now(zone) if epoch is None
            else datetime.datetime.fromtimestamp(int(epoch), zone))


def _write_pieces(directory: str, name: str, info: ArchiveInfo, members: List[Member],
                  contents: Sequence[IO[bytes]], warc: Member) -> Tuple[str, int]:
    """Path of the description, and bytes of the files of the zip."""
    description = os.path.join(directory, f"{name}.pieces.json")
    old = _pieces_of(description)
    # Named by their contents: readers of the old WACZ keep theirs until the end.
    stem = f".{name}.{info.uuid[:13]}.{members[-1].sha256[:8]}"
    head_name, tail_name = f"{stem}.head", f"{stem}.tail"
    with replaced_file(os.path.join(directory, head_name)) as head:
        for member, content in zip(members, contents):
            head.write(local_header(member))
            shutil.copyfileobj(content, head, 1 << 20)
        head.write(local_header(warc))
        head_size = head.tell()
    tail = central_directory([*members, warc])
    with replaced_file(os.path.join(directory, tail_name)) as file:
        file.write(tail)
    with replaced_file(description) as file:
        file.write(json.dumps({
            "format": 1, "archive": info.name, "uuid": info.uuid,
            "pieces": [{"file": head_name, "size_bytes": head_size},
                       {"space": True, "size_bytes": warc.size},
                       {"file": tail_name, "size_bytes": len(tail)}]}, indent=2).encode() + b"\n")
    for piece in old - {head_name, tail_name}:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, piece))
    return description, head_size + len(tail)


def _pieces_of(description: str) -> "set[str]":
    """Names of the hidden files that a description of this program lists."""
    try:
        with open(description, "rb") as file:
            pieces = json.loads(file.read(_DESCRIPTION_SIZE_MAX))["pieces"]
        names = {piece["file"] for piece in pieces if "file" in piece}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if isinstance(name, str) and _PIECE_NAME.fullmatch(name)}
