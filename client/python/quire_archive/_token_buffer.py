# SPDX-License-Identifier: Apache-2.0
"""Cuts the tokens of documents, put end to end, into windows."""
from __future__ import annotations

import collections
import dataclasses
from typing import Any, Deque, List, Optional


@dataclasses.dataclass
class _Part:
    """Tokens of a document that are in the buffer."""

    index: int
    size: int
    # Tokens of the document before these.
    offset: int
    is_withdrawn: bool


class TokenBuffer:
    """Tokens that were not taken yet, and of which documents they are. Thread-compatible.

    Documents have increasing indices. `consumed` and `token_offset` are where to go on so that
    tokens follow on those that were taken: the first index that was not taken as a whole, and
    its tokens that were.
    """

    def __init__(self, consumed: int, token_offset: int) -> None:
        self.consumed = consumed
        self.token_offset = token_offset
        # Withdrawn documents before `consumed`.
        self.withdrawn_count = 0
        self._tokens: List[int] = []
        self._parts: Deque[_Part] = collections.deque()

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self._tokens)

    def add(self, index: int, tokens: Optional[Any], offset: int) -> None:
        """Adds the tokens of a document from `offset` on; None if it is withdrawn."""
        found = [] if tokens is None else \
            tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
        del found[:offset]
        self._tokens += found
        self._parts.append(_Part(index, len(found), offset, tokens is None))

    def take(self, size: int) -> List[int]:
        """The next tokens. REQUIRES: size <= len(self)."""
        taken = self._tokens[:size]
        del self._tokens[:size]
        parts = self._parts
        while parts and parts[0].size <= size:
            part = parts.popleft()
            size -= part.size
            self.withdrawn_count += part.is_withdrawn
            self.consumed, self.token_offset = part.index + 1, 0
        if size:
            parts[0].size -= size
            parts[0].offset += size
            self.consumed, self.token_offset = parts[0].index, parts[0].offset
        return taken
