# SPDX-License-Identifier: Apache-2.0
"""Seekable files over a document or a whole archive."""
from __future__ import annotations

import io
import os
from typing import Any, Callable

# Bytes of one read from the server.
BUFFER_SIZE = 256 << 10


class SpanFile(io.RawIOBase):
    """`size` bytes, read by `read_range(offset, size)`."""

    def __init__(self, read_range: Callable[[int, int], bytes], size: int, name: str) -> None:
        super().__init__()
        self._read_range = read_range
        self._size = size
        self._at = 0
        self.name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}, before the start")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._next(len(view))
        view[:len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self._next(self._size)

    def _next(self, size: int) -> bytes:
        if self.closed:
            raise ValueError("the file is closed")
        size = min(size, self._size - self._at)
        if size <= 0:
            return b""
        data = self._read_range(self._at, size)
        self._at += size
        return data
