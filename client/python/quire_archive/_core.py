# SPDX-License-Identifier: Apache-2.0
"""What the two clients do, without the network.

Each function here is a generator of steps (_steps.py). Results that come one after the
other are yielded as Emit.

Answers are checked against the request, and bytes against their checksum.
"""
from __future__ import annotations

import collections
import dataclasses
import functools
import time
from typing import Any, Deque, List, Optional, Sequence, Tuple, Union

from xxhash import xxh3_64_intdigest

from . import _messages as messages
from . import _options, _stored
from ._retries import Retries
from ._steps import (ArchiveName, Call, Close, Compute, Emit, Finish, Open, Receive, Sleep, Start,
                     Steps)
from .errors import (AnswerDamaged, ArchiveStateUnknown, DictionaryNotFound,
                     DocumentNotFound, DocumentWithdrawn, LimitExceeded, QuireError, ServerFault)
from .records import (WITHDRAWN_TYPE, Answer, AnyKey, ArchiveInfo, Document, Key, Prefix, Target,
                      WithdrawnCount, field_value, fill, make_document, make_info, resolve)

PAGE_SIZE = 4000


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
                                    max(0.001, end - time.monotonic()), retries.attempt)
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
                       decoding: "Decoding") -> Steps[Answer]:
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
                 info: Optional[ArchiveInfo] = None) -> Steps["Decoding"]:
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

    # --- Scans.

    def stream_span(self, archive: ArchiveName, offset: int,
                    size: Optional[int]) -> Steps[None]:
        """Emits the bytes of a span, in pieces."""
        reader = yield from self.open_scan(archive, offset, size)
        while True:
            piece = yield from reader.next_piece()
            if piece is None:
                return
            yield Emit((piece,))

    def open_scan(self, archive: ArchiveName, offset: int, size: Optional[int],
                  info: Optional[ArchiveInfo] = None) -> Steps["ScanReader"]:
        """A reader of a span; None: to the archive's end."""
        if info is None:
            info = yield from self.info(archive)
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

    def count_unlisted(self, archive: ArchiveName, lister: "Lister", document_count: int,
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


class Decoding:
    """Encoding of the answers of one call, and their decoder."""

    def __init__(self, core: Core, is_stored: bool, archive: str = "") -> None:
        self._core = core
        # For stored answers.
        self._archive = archive
        self._decoder = _stored.Decoder() if is_stored else None
        # Dictionary of the answer that was prepared last.
        self.dictionary: Any = None

    def set(self, request: Any) -> None:
        """Sets the accepted encodings of a request."""
        del request.accepted_encodings[:]
        if self._decoder is not None:
            request.accepted_encodings.append(messages.STORED)

    def prepare(self, message: Any) -> Steps[None]:
        """Fetches the dictionary of an answer if it is missing. Raises DictionaryNotFound also
        if the server withholds it since documents were withdrawn."""
        self.dictionary = None
        if message.encoding != messages.STORED or self._decoder is None:
            return
        needed = self._decoder.dictionary_hash(message.details)
        if needed is not None:
            dictionaries = self._core.dictionaries
            self.dictionary = dictionaries.get(needed)
            if self.dictionary is None:
                try:
                    data = yield from self._core.fetch_dictionary(self._archive, needed)
                except DocumentWithdrawn as error:
                    raise DictionaryNotFound(str(error)) from None
                self.dictionary = dictionaries.add(needed, data)

    def text(self, message: Any, dictionary: Any) -> bytes:
        """The checked bytes of an answer; `dictionary`: that of prepare(). Thread-safe."""
        data: bytes = message.data
        if xxh3_64_intdigest(data) != message.checksum:
            raise AnswerDamaged("received bytes do not match their checksum")
        size: int = message.range.size_bytes
        if message.encoding == messages.IDENTITY:
            if len(data) != size:
                raise ServerFault(f"the server sent {len(data)} bytes, named {size} bytes")
            return data
        if message.encoding != messages.STORED or self._decoder is None:
            raise ServerFault(f"the server sent wire encoding {message.encoding}, which was not "
                              "asked for")
        return self._decoder.decode(message.details, data, size, dictionary)


def expected_span(target: Target, document: Optional[Document]) -> Tuple[int, int]:
    """Offset and size that an answer must have. Raises ServerFault."""
    name, part = target.name, target.part
    if name is None:
        assert part is not None
        return part
    if document is None:
        raise ServerFault("the server did not say which document it sent")
    if (document.ordinal if isinstance(name, int) else document.id) != name:
        raise ServerFault(f"the server sent document {document.ordinal} for another one")
    if part is None:
        return document.offset, document.size
    if part[0] + part[1] > document.size:
        raise ServerFault("the server answered a part past the end of the document")
    return document.offset + part[0], part[1]


def make_readable(message: Any) -> Document:
    """The document of an answer. Raises DocumentWithdrawn if the bytes are only zeros, which
    stand for what was removed for good."""
    document = make_document(message)
    if document.record_type == WITHDRAWN_TYPE:
        raise DocumentWithdrawn(f"document {document.ordinal} was removed for good",
                                reason="DOCUMENT_WITHDRAWN")
    return document


def check_answer(target: Target, message: Any, decoding: Decoding) -> Answer:
    """The answer of a ReadResponse or BatchResult. REQUIRES: decoding.prepare()."""
    document = make_readable(message.document) if message.HasField("document") else None
    span = message.range
    offset, size = span.offset, span.size_bytes
    key, name, part = target
    # The first is true of most answers, and quick.
    if (document is None or (document.id != name and document.ordinal != name)
            or part is not None
            or document.offset != offset or document.size != size) \
            and (offset, size) != expected_span(target, document):
        raise ServerFault(f"the server sent {size} bytes at offset {offset} for {key!r}")
    if message.encoding != messages.IDENTITY:
        return Answer(key, document, decoding.text(message, decoding.dictionary))
    data = message.data
    if xxh3_64_intdigest(data) != message.checksum or len(data) != size:
        decoding.text(message, decoding.dictionary)
    return Answer(key, document, data)


class Lister:
    """Pages of a listing; the next one is requested while the caller has one."""

    METHOD = "ListDocuments"

    def __init__(self, core: Core, archive: ArchiveName, prefix: Optional[bytes],
                 delimiter: Optional[bytes], first_ordinal: int,
                 page_size: int = PAGE_SIZE, fields: Sequence[str] = (),
                 where: Optional[str] = None) -> None:
        self._core = core
        self._archive = archive.name
        self._request = archive.set(messages.ListDocumentsRequest(page_size=page_size))
        self._prefix = prefix
        self._next_ordinal = first_ordinal
        if prefix is None:
            self._request.first_ordinal = first_ordinal
        else:
            self._request.prefix = prefix
            if delimiter is not None:
                self._request.delimiter = delimiter
        if isinstance(fields, str):
            raise TypeError(f"fields must be a list of names, got {fields!r}")
        self._fields = tuple(fields)
        self._request.fields.extend(self._fields)
        if where is not None:
            self._request.filter = where
        self._started: Any = None
        self._has_ended = False
        # In archive order: documents that were passed over, and the first of the last ones
        # that are neighbours.
        self.unlisted_count = 0
        self.unlisted_ordinal: Optional[int] = None

    def next_page(self) -> Steps[Any]:
        """None at the end."""
        while not self._has_ended:
            page = yield from self._receive()
            if self._request.HasField("filter") and not page.is_filtered:
                raise ServerFault("the server does not know filters: ask one of a newer version, "
                                  "or leave out `where`")
            if not page.HasField("next_page_token"):
                self._has_ended = True
                return page
            if page.next_page_token == self._request.page_token:
                raise ServerFault("the server's list of documents does not end")
            self._request.page_token = page.next_page_token
            self._started = yield Start(self.METHOD, self._archive, self._request,
                                        self._core.options.deadline)
            # A page of withdrawn documents only is empty.
            if page.documents or page.common_prefixes:
                return page
        return None

    def _receive(self) -> Steps[Any]:
        started, self._started = self._started, None
        failed: Optional[QuireError] = None
        if started is not None:
            try:
                return (yield Finish(started))
            except QuireError as error:
                failed = error
        return (yield from self._core.call(self.METHOD, self._archive, self._request, failed))

    def documents_of(self, page: Any) -> List[Document]:
        """The documents of a page, checked; none that are withdrawn."""
        documents = [document for document in map(self._make_document, page.documents)
                     if document.record_type != WITHDRAWN_TYPE]
        if self._prefix is None:
            next_ordinal = self._next_ordinal
            for document in documents:
                if document.ordinal != next_ordinal:
                    self._note_unlisted(next_ordinal, document.ordinal)
                next_ordinal = document.ordinal + 1
            self._next_ordinal = next_ordinal
        elif self._prefix:
            for document in documents:
                if not document.id.startswith(self._prefix):
                    raise ServerFault("the server listed a document without the prefix")
        return documents

    def _make_document(self, message: Any) -> Document:
        document = make_document(message)
        if len(message.fields) != len(self._fields):
            raise ServerFault(f"the server sent {len(message.fields)} fields of a document, "
                              f"expected {len(self._fields)}: it does not know fields")
        if self._fields:
            document.fields = dict(zip(self._fields, map(field_value, message.fields)))
        return document

    def note_end(self, document_count: int) -> None:
        """Notes the documents after the last one of the list, in archive order."""
        if self._next_ordinal < document_count:
            self._note_unlisted(self._next_ordinal, document_count)

    def _note_unlisted(self, begin: int, end: int) -> None:
        if end < begin:
            raise ServerFault(f"the server listed document {end} where {begin} was next")
        self.unlisted_count += end - begin
        self.unlisted_ordinal = begin


class ScanReader:
    """Reads a span of one state of an archive; resumes after an error.

    Blocks are decoded in other threads while the next messages are received.
    """

    def __init__(self, core: Core, archive: ArchiveName, offset: int, end: int,
                 decoding: Decoding) -> None:
        self._core = core
        self._archive = archive
        # End of the received bytes.
        self._offset = offset
        self._end = end
        self._decoding = decoding
        self._retries = Retries(core)
        self._stream: Any = None
        # Results of started Compute steps, in order.
        self._decoded: Deque[Any] = collections.deque()
        # Raised after what was received before it.
        self._failure: Optional[QuireError] = None

    def next_piece(self) -> Steps[Optional[bytes]]:
        """None at the end."""
        while (self._offset < self._end and self._failure is None
               and len(self._decoded) <= _stored.thread_count()):
            try:
                if self._stream is None:
                    self._stream = yield Open("Scan", self._archive.name, self._request(),
                                              self._retries.attempt)
                message = yield Receive(self._stream)
                if message is None:
                    raise AnswerDamaged(f"the stream ended early: the scan stopped at offset "
                                        f"{self._offset} of {self._end}")
                piece = yield from self._take(message)
                if piece:
                    return piece
            except DictionaryNotFound:
                self._decoding = Decoding(self._core, False)
                yield from self._close()
            except QuireError as error:
                yield from self._close()
                delay = self._retries.delay_after_stream(error)
                if delay is None:
                    self._failure = self._retries.final_error(error)
                    break
                yield Sleep(delay)
        if self._decoded:
            decoded: bytes = yield Finish(self._decoded.popleft())
            return decoded
        if self._failure is not None:
            raise self._failure
        if self._stream is not None:
            yield from self._drain()
        return None

    def _request(self) -> Any:
        request = self._archive.set(messages.ScanRequest(
            offset=self._offset, size_bytes=self._end - self._offset))
        self._decoding.set(request)
        return request

    def _take(self, message: Any) -> Steps[bytes]:
        """The text of a message; empty if it is being decoded."""
        span = message.range
        if span.offset != self._offset or span.size_bytes > self._end - self._offset:
            raise ServerFault(f"the server sent {span.size_bytes} bytes at offset {span.offset}, "
                              f"where the scan was at offset {self._offset}")
        yield from self._decoding.prepare(message)
        text = functools.partial(self._decoding.text, message, self._decoding.dictionary)
        piece = b""
        if message.encoding == messages.IDENTITY and not self._decoded:
            piece = text()
        else:
            self._decoded.append((yield Compute(text)))
        self._offset += span.size_bytes
        self._retries.note_progress()
        return piece

    def _close(self) -> Steps[None]:
        if self._stream is not None:
            yield Close(self._stream)
            self._stream = None

    def _drain(self) -> Steps[None]:
        """All bytes are here; how the call ends changes nothing."""
        try:
            yield Receive(self._stream)
        except QuireError:
            pass
        yield from self._close()


class Pieces:
    """Bytes of a scan that were not taken yet."""

    def __init__(self) -> None:
        # Offset of the first byte in the archive.
        self.offset = 0
        self.size = 0
        self._pieces: Deque[bytes] = collections.deque()
        # Taken part of the first piece.
        self._at = 0
        # The bytes that were taken last are zeros from the start of their last piece on, or
        # from their own.
        self.ends_with_zeros = False

    def add(self, piece: bytes) -> None:
        """Appends the next bytes."""
        self._pieces.append(piece)
        self.size += len(piece)

    def skip_to(self, offset: int) -> bool:
        """Drops bytes before `offset`; True if more must be added first."""
        while self._pieces and self.offset < offset:
            size = min(len(self._pieces[0]) - self._at, offset - self.offset)
            self.offset += size
            self.size -= size
            self._advance(self._at + size)
        return self.offset < offset

    def take(self, size: int) -> bytes:
        """The next bytes. REQUIRES: size <= self.size."""
        self.offset += size
        self.size -= size
        pieces = self._pieces
        if pieces and size <= len(pieces[0]) - self._at:
            end = self._at + size
            taken = pieces[0][self._at:end]
            self._advance(end)
            self.ends_with_zeros = _is_zeros(taken)
            return taken
        parts: List[Any] = []
        while size:
            end = min(len(pieces[0]), self._at + size)
            parts.append(memoryview(pieces[0])[self._at:end])
            size -= end - self._at
            self._advance(end)
        self.ends_with_zeros = bool(parts) and _is_zeros(parts[-1])
        return b"".join(parts)

    def _advance(self, end: int) -> None:
        if end == len(self._pieces[0]):
            self._pieces.popleft()
            end = 0
        self._at = end


def _is_zeros(data: Union[bytes, memoryview]) -> bool:
    """True for one or more zeros. Copies a view only if its last byte is one."""
    return len(data) > 0 and data[-1] == 0 and bytes(data).count(0) == len(data)
