# SPDX-License-Identifier: Apache-2.0
"""Scans: the bytes of a span of an archive, and pieces of them."""
from __future__ import annotations

import collections
import functools
from typing import TYPE_CHECKING, Any, Deque, List, Optional, Union

from . import _messages as messages
from . import _stored
from ._answers import Decoding
from ._retries import Retries
from ._steps import ArchiveName, Close, Compute, Finish, Open, Receive, Sleep, Steps
from .errors import AnswerDamaged, DictionaryNotFound, QuireError, ServerFault

if TYPE_CHECKING:
    from ._core import Core


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
