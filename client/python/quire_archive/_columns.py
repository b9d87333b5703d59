# SPDX-License-Identifier: Apache-2.0
"""Pages of a listing as columns, made of the message for each document.

The entries of a page, put end to end, are parsed as one message whose fields are
repeated. A field that some documents do not have, or have as zero, gives fewer values
than documents; it is then read from each document.
"""
from __future__ import annotations

import itertools
from typing import Any, Callable, Iterable, List, Optional, Sequence

from google.protobuf.message import DecodeError

from . import _messages as messages
from .errors import ServerFault
from .records import WITHDRAWN_TYPE

_WITHDRAWN = WITHDRAWN_TYPE.encode()
_INT64_MAX = 2**63 - 1
# Members of FieldValue, by names of types in ArchiveInfo.fields.
_VALUES = {"string": "string_value", "integer": "integer_value", "float": "float_value",
           "boolean": "boolean_value", "time": "time_us"}


def parse(kind: Any, entries: Iterable[bytes]) -> Any:
    try:
        return kind.FromString(b"".join(entries))
    except DecodeError as error:
        raise ServerFault(f"the server listed a malformed document: {error}") from None


def _field_column(entries: List[bytes], kind: str) -> List[Any]:
    """The values of messages FieldValue of one type; None is null."""
    found = getattr(parse(messages.FieldColumn, entries), _VALUES[kind])
    null_count = entries.count(b"")
    if len(found) != len(entries) - null_count:
        raise ServerFault(f"the server sent {len(found)} values of type {kind} for "
                          f"{len(entries) - null_count} documents")
    if not null_count:
        return list(found)
    values = iter(found)
    return [next(values) if entry else None for entry in entries]


class Page:
    """Documents of a page; all columns have equal lengths. `fields`: types of the fields that
    were asked for."""

    def __init__(self, documents: Any, fields: Sequence[str] = ()) -> None:
        entries = list(documents)
        self.count = len(entries)
        self._entries: List[Any] = entries
        self._parsed: Optional[List[Any]] = None
        columns = parse(messages.DocumentFields, entries)
        self.ordinals: List[int] = self._column(columns.ordinal, lambda found: found.ordinal)
        self.ids: List[bytes] = self._column(columns.id, lambda found: found.id)
        ranges = parse(messages.RangeColumns, columns.range)
        self.offsets: List[int] = self._column(ranges.offset, lambda found: found.range.offset)
        self.sizes: List[int] = self._column(
            ranges.size_bytes, lambda found: found.range.size_bytes)
        # Each None if no document of the page has a value.
        self.times_ms: Optional[List[Optional[int]]] = self._optional(
            columns.capture_time_ms,
            lambda found: found.capture_time_ms if found.HasField("capture_time_ms") else None)
        self.media_types: Optional[List[Optional[bytes]]] = self._optional(
            columns.media_type, lambda found: found.media_type.encode() or None)
        self.record_types: Optional[List[Optional[bytes]]] = self._optional(
            columns.record_type, lambda found: found.record_type.encode() or None)
        found = list(columns.fields)
        if len(found) != self.count * len(fields):
            raise ServerFault(f"the server sent {len(found)} fields of {self.count} documents, "
                              f"not {len(fields)} of each: it does not know fields")
        self.fields: List[List[Any]] = [
            _field_column(found[number::len(fields)], kind) for number, kind in enumerate(fields)]
        if self.record_types is not None and _WITHDRAWN in self.record_types:
            self.keep([kind != _WITHDRAWN for kind in self.record_types])
        self._entries, self._parsed = [], None

    def _column(self, values: Any, take: Callable[[Any], Any]) -> List[Any]:
        if len(values) == self.count:
            return list(values)
        if self._parsed is None:
            self._parsed = [parse(messages.Document, (entry,)) for entry in self._entries]
        return [take(document) for document in self._parsed]

    def _optional(self, values: Any, take: Callable[[Any], Any]) -> Optional[List[Any]]:
        found = self._column(values, take) if len(values) else None
        return found if found is None or b"" not in found else [value or None for value in found]

    def keep(self, kept: List[bool]) -> None:
        """Drops the documents whose entry in `kept` is False."""
        self.count = sum(kept)
        for name in ("ordinals", "ids", "offsets", "sizes", "times_ms", "media_types",
                     "record_types"):
            values = getattr(self, name)
            if values is not None:
                setattr(self, name, list(itertools.compress(values, kept)))
        self.fields = [list(itertools.compress(values, kept)) for values in self.fields]

    def check(self) -> None:
        """Raises ServerFault if a position or number is above what columns hold."""
        if self.count and max(max(self.ordinals), max(self.offsets), max(self.sizes)) > _INT64_MAX:
            raise ServerFault("the server listed a document past 2^63 - 1")
