# SPDX-License-Identifier: Apache-2.0
"""What the two clients do, without the network.

Each function here is a generator of steps (_steps.py). Results that come one after the
other are yielded as Emit.

Answers are checked against the request, and bytes against their checksum.
"""
from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any, List, Optional, Sequence, Tuple, Union

from xxhash import xxh3_64_intdigest

from . import _messages as messages
from . import _options, _stored
from ._answers import Decoding, check_answer, expected_span, make_readable
from ._listing import PAGE_SIZE, CapturePages, Lister
from ._retries import Retries
from ._scan import Pieces, ScanReader
from ._steps import ArchiveName, Call, Close, Emit, Open, Receive, Sleep, Steps
from .errors import (AnswerDamaged, ArchiveStateUnknown, DictionaryNotFound,
                     DocumentNotFound, DocumentWithdrawn, LimitExceeded, QuireError, RangePastEnd,
                     ServerFault)
from .records import (Answer, AnyKey, ArchiveInfo, Document, Key, Prefix, Target, WithdrawnCount,
                      checked_range, fill, make_capture, make_info, resolve)


class Core:
    """What all calls of one client share. Thread-safe."""

    def __init__(self, options: _options.Options) -> None:
        self.options = options
        # A server that has answered may take longer to come back.
        self.has_answered = False
        self.dictionaries = _stored.Dictionaries(options.dictionary_size_max)
        self._limits: Any = None

    # --- Calls with one answer.

    def call(self, method: str, archive: str, request: Any,
             failed: Optional[QuireError] = None) -> Steps[Any]:
        """Repeats the call as archive.proto says, within the deadline. `failed`: the error of
        an attempt that was made already."""
        end = time.monotonic() + self.options.deadline
        retries = Retries(self, end)
        while True:
            if failed is not None:
                yield from retries.wait_after(failed)
            try:
                answer = yield Call(method, archive, request,
                                    _options.call_timeout(end - time.monotonic()),
                                    retries.attempt)
                self.has_answered = True
                return answer
            except QuireError as error:
                failed = error

    def limits(self, archive: ArchiveName) -> Steps[Any]:
        """Limits of the server; asks once, that of the archive."""
        if self._limits is None:
            answer = yield from self.call("ListArchives", archive.name,
                                          messages.ListArchivesRequest(page_size=1))
            self._store_limits(answer.limits)
        return self._limits

    def _store_limits(self, limits: Any) -> None:
        if not (limits.read_size_bytes_max and limits.chunk_size_bytes_max
                and limits.batch_message_items_max and limits.batch_pending_items_max):
            raise ServerFault("the server states a limit of zero")
        self._limits = limits

    def archives(self) -> Steps[List[ArchiveInfo]]:
        """All archives, by name."""
        found: List[ArchiveInfo] = []
        request = messages.ListArchivesRequest()
        while True:
            answer = yield from self.call("ListArchives", "", request)
            self._store_limits(answer.limits)
            found += [make_info(archive) for archive in answer.archives]
            if not answer.HasField("next_page_token"):
                return found
            if not answer.archives:
                raise ServerFault("the server's list of archives does not end")
            request.page_token = answer.next_page_token

    def info(self, archive: ArchiveName) -> Steps[ArchiveInfo]:
        """Description of an archive, in the state of the uuid. Raises ArchiveStateUnknown
        if it has no such state."""
        answer = yield from self.call(
            "GetArchive", archive.name, messages.GetArchiveRequest(archive=archive.name))
        self._store_limits(answer.limits)
        info = make_info(answer.archive)
        if archive.uuid in (None, info.uuid):
            return info
        for state in [*answer.archive.history, *answer.archive.redacted_states]:
            if state.uuid == archive.uuid:
                # Documents were appended since, or removed.
                return dataclasses.replace(info, uuid=state.uuid, size=state.size_bytes,
                                           document_count=state.document_count)
        raise ArchiveStateUnknown(
            f"archive {archive.name} has uuid {info.uuid}, not {archive.uuid}: "
            "it was replaced", reason="ARCHIVE_STATE_UNKNOWN",
            metadata={"archive": archive.name})

    def read(self, archive: ArchiveName, key: AnyKey) -> Steps[Answer]:
        """Reads one document or span, of any size."""
        target = resolve(key)
        if target.name is None and target.part is not None:
            limits = yield from self.limits(archive)
            if target.part[1] > limits.read_size_bytes_max:
                return (yield from self.read_large(archive, target))
        request = archive.set(messages.ReadRequest())
        fill(target, request)
        decoding = yield from self.decoding(archive, wants_stored=False)
        while True:
            decoding.set(request)
            try:
                answer = yield from self.call("Read", archive.name, request)
            except LimitExceeded:
                return (yield from self.read_large(archive, target))
            try:
                yield from decoding.prepare(answer)
            except DictionaryNotFound:
                # The archive was replaced.
                decoding = Decoding(self, False)
                continue
            return check_answer(target, answer, decoding)

    def read_large(self, archive: ArchiveName, target: Target) -> Steps[Answer]:
        """Reads what does not fit in one message.

        Starts again after an error: the archive may have been replaced. What came
        before the error is thus no progress.
        """
        request = archive.set(messages.ReadRequest())
        fill(target, request)
        decoding = yield from self.decoding(archive, wants_stored=False)
        retries = Retries(self)
        while True:
            decoding.set(request)
            stream = yield Open("ReadStream", archive.name, request, retries.attempt)
            try:
                return (yield from self._receive_large(stream, target, decoding))
            except DictionaryNotFound:
                decoding, delay = Decoding(self, False), 0.0
            except QuireError as error:
                next_delay = retries.delay_after(error)
                if next_delay is None:
                    raise retries.final_error(error) from None
                delay = next_delay
            yield Close(stream)
            yield Sleep(delay)

    def _receive_large(self, stream: Any, target: Target,
                       decoding: Decoding) -> Steps[Answer]:
        document: Optional[Document] = None
        parts: List[bytes] = []
        expected: Optional[Tuple[int, int]] = None
        while True:
            message = yield Receive(stream)
            if message is None:
                break
            self.has_answered = True
            if expected is None:
                if message.HasField("document"):
                    document = make_readable(message.document)
                expected = expected_span(target, document)
            offset, size = expected
            if message.range.offset != offset or message.range.size_bytes > size:
                raise ServerFault(
                    f"the server sent {message.range.size_bytes} bytes at offset "
                    f"{message.range.offset}, where offset {offset} and at most {size} bytes "
                    "were expected")
            yield from decoding.prepare(message)
            parts.append(decoding.text(message, decoding.dictionary))
            expected = (offset + len(parts[-1]), size - len(parts[-1]))
        if expected is None or expected[1]:
            raise AnswerDamaged("the stream ended early: "
                                f"{sum(map(len, parts))} bytes were received")
        return Answer(target.key, document, b"".join(parts))

    # --- Decoding.

    def decoding(self, archive: ArchiveName, wants_stored: bool,
                 info: Optional[ArchiveInfo] = None) -> Steps[Decoding]:
        """Encoding of a call; `wants_stored`: "auto" prefers stored for it."""
        chosen = self.options.encoding
        if chosen == "identity" or (chosen == "auto" and not wants_stored):
            return Decoding(self, False)
        if info is None:
            info = yield from self.info(archive)
        return Decoding(self, _stored.can_decode(info, self.dictionaries.size_max), archive.name)

    def fetch_dictionary(self, archive: str, table_hash: int) -> Steps[bytes]:
        """Reads a dictionary of an archive; resumes after an error."""
        request = messages.GetDictionaryRequest(hash=f"{table_hash:016x}")
        data = bytearray()
        size: Optional[int] = None
        retries = Retries(self)
        while True:
            request.offset = len(data)
            stream = yield Open("GetDictionary", archive, request, retries.attempt)
            try:
                while True:
                    message = yield Receive(stream)
                    if message is None:
                        break
                    retries.note_progress()
                    size = _take_dictionary(message, data, size, self.dictionaries.size_max)
                if size != len(data):
                    raise AnswerDamaged("the dictionary's stream ended early")
                return bytes(data)
            except QuireError as error:
                delay = retries.delay_after(error)
                if delay is None:
                    raise retries.final_error(error) from None
            yield Close(stream)
            yield Sleep(delay)

    # --- Listings.

    def documents(self, archive: ArchiveName, prefix: Optional[bytes],
                  first_ordinal: int = 0, page_size: int = PAGE_SIZE,
                  fields: Sequence[str] = (), where: Optional[str] = None) -> Steps[None]:
        """Emits documents: by id with a prefix, otherwise in archive order."""
        lister = Lister(self, archive, prefix, None, first_ordinal, page_size, fields, where)
        while True:
            page = yield from lister.next_page()
            if page is None:
                return
            yield Emit(lister.documents_of(page))

    def entries(self, archive: ArchiveName, prefix: bytes, delimiter: bytes) -> Steps[None]:
        """Emits the documents and common prefixes of one level, by id."""
        lister = Lister(self, archive, prefix, delimiter, 0)
        while True:
            page = yield from lister.next_page()
            if page is None:
                return
            found: List[Union[Document, Prefix]] = list(lister.documents_of(page))
            if page.common_prefixes:
                found += [Prefix(name) for name in page.common_prefixes]
                found.sort(key=lambda entry: entry.id)
            yield Emit(found)

    def captures(self, archive: ArchiveName, request: Any) -> Steps[None]:
        """Emits captures of a ListCapturesRequest, which _listing.py makes."""
        pages = CapturePages(self, archive, request)
        has_warned = False
        while True:
            page = yield from pages.next_page()
            if page is None:
                return
            if page.unindexed_document_count and not has_warned:
                has_warned = True
                warnings.warn(f"{archive.name}: captures are missing: an earlier version wrote "
                              f"{page.unindexed_document_count} documents without an index",
                              stacklevel=2)
            yield Emit([make_capture(capture) for capture in page.captures])

    # --- Scans.

    def stream_span(self, archive: ArchiveName, offset: int,
                    size: Optional[int]) -> Steps[None]:
        """Emits the bytes of a span, in pieces; None: to the archive's end. Raises RangePastEnd,
        and what checked_range() does."""
        offset, given_size = checked_range((offset, 0 if size is None else size))
        info = yield from self.info(archive)
        # The server is not asked for a span without bytes.
        if offset > info.size:
            raise RangePastEnd(f"offset {offset} lies past the end of the archive, which has "
                               f"{info.size} bytes", reason="RANGE_PAST_END")
        reader = yield from self.open_scan(archive, offset, None if size is None else given_size,
                                           info)
        while True:
            piece = yield from reader.next_piece()
            if piece is None:
                return
            yield Emit((piece,))

    def open_scan(self, archive: ArchiveName, offset: int, size: Optional[int],
                  info: ArchiveInfo) -> Steps[ScanReader]:
        """A reader of a span; None: to the archive's end."""
        if size is None:
            size = max(0, info.size - offset)
        decoding = yield from self.decoding(archive, size >= info.size // 8, info)
        # One state of the archive, so that a scan can resume.
        return ScanReader(self, ArchiveName(info.name, info.uuid), offset, offset + size,
                          decoding)

    def scan(self, archive: ArchiveName, first_ordinal: int,
             withdrawn: WithdrawnCount) -> Steps[None]:
        """Emits (document, bytes), in archive order; counts what is withdrawn."""
        info = yield from self.info(archive)
        pinned = ArchiveName(info.name, info.uuid)
        lister = Lister(self, pinned, None, None, first_ordinal)
        reader: Optional[ScanReader] = None
        pieces = Pieces()
        while True:
            page = yield from lister.next_page()
            if page is None:
                break
            documents = lister.documents_of(page)
            if not documents:
                continue
            if reader is None:
                reader = yield from self.open_scan(pinned, documents[0].offset, None, info)
                pieces.offset = documents[0].offset
            found: List[Tuple[Document, bytes]] = []
            for document in documents:
                if document.offset < pieces.offset:
                    raise ServerFault(f"the server listed document {document.ordinal} at offset "
                                      f"{document.offset}, not {pieces.offset}")
                # Withdrawn documents are not listed; their bytes are passed over.
                while pieces.skip_to(document.offset) or pieces.size < document.size:
                    if found:
                        # Not held back while the next piece is awaited.
                        yield Emit(found)
                        found = []
                    piece = yield from reader.next_piece()
                    if piece is None:
                        raise ServerFault(f"document {document.ordinal} ends after the archive")
                    pieces.add(piece)
                data = pieces.take(document.size)
                # It may have been withdrawn after it was listed: a scan then has zeros.
                if pieces.ends_with_zeros and (
                        yield from self.is_withdrawn(pinned, document.ordinal)):
                    withdrawn.count += 1
                    continue
                found.append((document, data))
            yield Emit(found)
        yield from self.count_unlisted(pinned, lister, info.document_count, withdrawn)

    def count_unlisted(self, archive: ArchiveName, lister: Lister, document_count: int,
                       withdrawn: WithdrawnCount) -> Steps[None]:
        """Counts the documents that a listing in archive order, which has ended, left out.

        Raises ServerFault if they are not withdrawn; asks for one of them.
        """
        lister.note_end(document_count)
        withdrawn.count += lister.unlisted_count
        ordinal = lister.unlisted_ordinal
        if ordinal is not None and not (yield from self.is_withdrawn(archive, ordinal)):
            raise ServerFault(f"the server did not list document {ordinal} of {archive.name}, "
                              "which can be read; begin again, as documents may have been "
                              "withdrawn or restored meanwhile")

    def is_withdrawn(self, archive: ArchiveName, ordinal: int) -> Steps[bool]:
        """True if the document cannot be read because it was withdrawn."""
        try:
            yield from self.read(archive, Key(ordinal, range=(0, 0)))
        except (DocumentNotFound, DocumentWithdrawn):
            return True
        return False


def _take_dictionary(message: Any, data: bytearray, size: Optional[int], size_max: int) -> int:
    """Checks and appends; returns the size of the whole."""
    if xxh3_64_intdigest(message.data) != message.checksum:
        raise AnswerDamaged("received bytes of the dictionary do not match their checksum")
    if size is None:
        size = int(message.size_bytes)
    if size > size_max:
        raise AnswerDamaged(f"the dictionary has {size} bytes, more than dictionary_size_max, "
                            f"{size_max}")
    if message.offset != len(data) or message.size_bytes != size \
            or len(message.data) > size - len(data):
        raise ServerFault(f"the server sent bytes of the dictionary at offset {message.offset} "
                          f"where {len(data)} was expected")
    data += message.data
    return size
