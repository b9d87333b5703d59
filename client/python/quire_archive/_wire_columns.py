# SPDX-License-Identifier: Apache-2.0
"""Listings as columns, which the server sends in the order of the archive. Needs pyarrow.

Numbers, offsets of strings and bits on the wire are those of Arrow, so that columns are made
without a look at their values. What a server sends is checked before it is used.
"""
from __future__ import annotations

import array
import functools
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import pyarrow
import pyarrow.compute

from . import _messages as messages
from ._columns import Page, parse
from ._core import Core
from ._listing import Lister
from ._steps import ArchiveName
from .errors import ServerFault

# Attributes: the members of ColumnSelection and DocumentColumns, and the type of their values.
_ATTRIBUTES = {"id": ("ids", "ids", "string"), "size": ("ranges", "sizes_bytes", "integer"),
               "time": ("capture_times", "capture_times_ms", "integer"),
               "type": ("media_types", "media_types", "string"),
               "record_type": ("record_types", "record_types", "string")}
_REQUIRED = ("ordinals", "ids", "offsets", "sizes_bytes")
_NUMBERS = {"integer": pyarrow.int64(), "float": pyarrow.float64(), "time": pyarrow.int64()}


def _words(data: bytes) -> bytes:
    """Numbers of 8 bytes in the order of this machine."""
    if sys.byteorder == "little":
        return data
    words = array.array("q", data)
    words.byteswap()
    return words.tobytes()


def _buffer(data: bytes, size: int, what: str) -> Any:
    if len(data) != size:
        raise ServerFault(f"the server sent {len(data)} bytes as {what}, expected {size}")
    return pyarrow.py_buffer(data)


def _array_of(column: Any, kind: str, count: int, what: str) -> Any:
    """The values of a ValueColumn: large_binary, int64, float64 or bool."""
    bits = (count + 7) // 8
    presence = (_buffer(column.presence, bits, f"presence of {what}")
                if column.HasField("presence") else None)
    if kind == "string":
        offsets = _buffer(_words(column.text_offsets), 8 * (count + 1), f"offsets of {what}")
        try:
            found = pyarrow.Array.from_buffers(
                pyarrow.large_binary(), count, [presence, offsets, pyarrow.py_buffer(column.text)])
            found.validate(full=True)
        except pyarrow.ArrowInvalid as error:
            raise ServerFault(f"the server sent malformed {what}: {error}") from None
        return found
    if kind == "boolean":
        values = _buffer(column.booleans, bits, what)
        return pyarrow.Array.from_buffers(pyarrow.bool_(), count, [presence, values])
    values = _buffer(_words(column.numbers), 8 * count, what)
    return pyarrow.Array.from_buffers(_NUMBERS[kind], count, [presence, values])


class WirePage:
    """Documents of a page. `fields`: types of the fields that were asked for, by name."""

    def __init__(self, columns: Any, fields: Mapping[str, str]) -> None:
        """`columns`: a DocumentColumns. Raises ServerFault."""
        self.count: int = columns.document_count
        self._columns = columns
        self._ordinals = self._attribute("ordinals", "integer")
        self._fields: Dict[str, Any] = {}
        if len(columns.fields) != len(fields):
            raise ServerFault(f"the server sent {len(columns.fields)} columns of fields, "
                              f"expected {len(fields)}")
        for column, (name, kind) in zip(columns.fields, fields.items()):
            self._fields[name] = _array_of(column, kind, self.count, f"the field {name}")

    def _attribute(self, member: str, kind: str) -> Any:
        """None if no document has one."""
        if not self._columns.HasField(member):
            if self.count and member in _REQUIRED:
                raise ServerFault(f"the server sent {self.count} documents without {member}")
            return None
        found = _array_of(getattr(self._columns, member), kind, self.count, member)
        if member not in _REQUIRED:
            return found
        if found.null_count:
            raise ServerFault(f"the server sent {member} that are null")
        if kind == "integer" and self.count and pyarrow.compute.min(found).as_py() < 0:
            raise ServerFault("the server listed a document past 2^63 - 1")
        return found

    @functools.cached_property
    def ordinals(self) -> List[int]:
        """Of the documents; and where they begin, and their sizes."""
        return self._integers(self._ordinals)

    @functools.cached_property
    def offsets(self) -> List[int]:
        """In the archive."""
        return self._integers(self._attribute("offsets", "integer"))

    @functools.cached_property
    def sizes(self) -> List[int]:
        """In bytes."""
        return self._integers(self._attribute("sizes_bytes", "integer"))

    @staticmethod
    def _integers(found: Any) -> List[int]:
        if found is None:
            return []
        words: List[int] = memoryview(found.buffers()[1]).cast("q").tolist()
        return words

    def column(self, name: str) -> Optional[Any]:
        """An attribute or a field; None if no document has a value."""
        if name == "ordinal":
            return self._ordinals
        if name in self._fields:
            return self._fields[name]
        _, member, kind = _ATTRIBUTES[name]
        return self._attribute(member, kind)


AnyPage = Union[Page, WirePage]


class ColumnLister(Lister):
    """Pages of a listing, as columns."""

    METHOD = "ListDocuments as columns"

    def __init__(self, core: Core, archive: ArchiveName, prefix: Optional[bytes],
                 names: Sequence[str], needs_ranges: bool, fields: Mapping[str, str],
                 where: Optional[str]) -> None:
        """`names`: columns that are wanted; without `needs_ranges` pages may have no offsets
        and sizes. `fields`: types by name, of those to return."""
        super().__init__(core, archive, prefix, None, 0, fields=list(fields), where=where)
        self._field_types = dict(fields)
        if prefix is None:
            selection = self._request.columns
            # Also if none is wanted.
            selection.SetInParent()
            selection.ranges = needs_ranges
            for name in names:
                if name in _ATTRIBUTES:
                    setattr(selection, _ATTRIBUTES[name][0], True)

    def page_of(self, answer: Any) -> AnyPage:
        """The documents of a page, checked; none that are withdrawn."""
        if answer.HasField("columns"):
            if self._prefix is not None:
                raise ServerFault("the server sent columns for a list by id, which asked for none")
            columns = WirePage(parse(messages.DocumentColumns, (answer.columns,)),
                               self._field_types)
            self._check_order(columns.ordinals)
            return columns
        # A server that does not know columns, or a list by id.
        page = Page(answer.documents, list(self._field_types.values()))
        page.check()
        if self._prefix is None:
            self._check_order(page.ordinals)
        elif self._prefix:
            for name in page.ids:
                if not name.startswith(self._prefix):
                    raise ServerFault("the server listed a document without the prefix")
        return page

    def _check_order(self, ordinals: List[int]) -> None:
        begin = self._next_ordinal
        end = begin + len(ordinals)
        if ordinals != list(range(begin, end)):
            for ordinal in ordinals:
                if ordinal != begin:
                    self._note_unlisted(begin, ordinal)
                begin = ordinal + 1
            end = begin
        self._next_ordinal = end
