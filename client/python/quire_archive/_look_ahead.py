# SPDX-License-Identifier: Apache-2.0
"""Reads documents ahead of their use, in windows."""
from __future__ import annotations

import itertools
import queue
import threading
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ._batch import OrdinalBatch
from .client import Archive
from .errors import CallCancelled, DocumentNotFound, DocumentWithdrawn, QuireError

# Documents of the first window; each next one is larger by the factor, up to the limit.
_FIRST_WINDOW = 256
_GROWTH = 64
# Size that is assumed of a document before any was received.
_FIRST_MEAN_SIZE = 8 << 10

# Ordinals in the order in which they were given, and the bytes of each document; None if it is
# withdrawn.
Window = Tuple[List[int], List[Optional[bytes]]]


class LookAhead:
    """Documents in the order of the ordinals, which are read in windows: a window is one batch
    call, which the server answers in the order of its storage, so that it reads and decodes
    each block of the window once.

    A thread reads the next window while the caller uses one, so two are in memory. A window
    has `documents_max` documents, or as many as have `bytes_max` by the mean size so far, and
    at least one. The thread starts with the first document and ends with close().
    Thread-compatible.

    Iterating raises QuireError for whatever cannot be read and is not withdrawn.
    """

    def __init__(self, archive: Archive, ordinals: Iterable[int], documents_max: int,
                 bytes_max: int) -> None:
        self._archive = archive
        self._ordinals = iter(ordinals)
        self._documents_max = documents_max
        self._bytes_max = bytes_max
        self._window_max = min(_FIRST_WINDOW, documents_max)
        self._size_sum, self._size_count = _FIRST_MEAN_SIZE, 1
        # Windows, then None; or what was raised.
        self._windows: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        # Windows that may be read: one more as soon as the last one is in use.
        self._slots = threading.Semaphore(1)
        self._is_closed = False
        self._thread: Optional[threading.Thread] = None

    def __iter__(self) -> Iterator[Window]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._read_all, daemon=True,
                                            name="quire-look-ahead")
            self._thread.start()
        while (window := self._windows.get()) is not None:
            if isinstance(window, BaseException):
                raise window
            self._slots.release()
            yield window

    def close(self) -> None:
        """Ends reading; does not wait for a call that waits for the server."""
        self._is_closed = True
        self._slots.release()

    def _read_all(self) -> None:
        try:
            while self._slots.acquire() and not self._is_closed:  # pylint: disable=consider-using-with
                window = self._read_window()
                self._windows.put(window)
                if window is None:
                    return
                self._window_max = min(self._documents_max, self._window_max * _GROWTH)
        except BaseException as error:  # pylint: disable=broad-exception-caught
            self._windows.put(error)

    def _read_window(self) -> Optional[Window]:
        """The next documents; None at the end."""
        mean = self._size_sum // self._size_count
        count = min(self._window_max, max(1, self._bytes_max // max(1, mean)))
        asked = list(itertools.islice(self._ordinals, count))
        if not asked:
            return None
        found = self._read(asked, mean)
        return asked, list(map(found.__getitem__, asked))

    def _read(self, asked: List[int], mean: int) -> Dict[int, Optional[bytes]]:
        # pylint: disable=protected-access
        archive = self._archive
        found: Dict[int, Optional[bytes]] = {}
        # In the order of the archive, and so of its storage: the server answers as many as it has
        # memory for in one sweep, and begins with those that come first.
        answers = archive.client._iterate(
            OrdinalBatch(archive._core, archive._target, mean).run(), sorted(asked))
        for documents, errors in answers:
            if self._is_closed:
                answers.close()  # type: ignore[attr-defined]
                raise CallCancelled("the documents are not needed any more")
            found.update(documents)
            self._size_sum += sum(map(len, documents.values()))
            self._size_count += len(documents)
            for ordinal, error in errors.items():
                found[ordinal] = self._after(ordinal, error)
        return found

    def _after(self, ordinal: int, error: QuireError) -> Optional[bytes]:
        """The bytes of a document whose item failed; None if it is withdrawn."""
        if isinstance(error, (DocumentWithdrawn, DocumentNotFound)):
            return None
        if error.code != "UNAVAILABLE":
            raise error
        # Alone, which waits and repeats.
        try:
            return self._archive.read(ordinal)
        except (DocumentWithdrawn, DocumentNotFound):
            return None
