# SPDX-License-Identifier: Apache-2.0
"""Archives as Arrow record batches: see Archive.to_arrow(). Needs pyarrow."""
from __future__ import annotations

import array
import bisect
import collections
import itertools
import operator
import warnings
from typing import (TYPE_CHECKING, Any, Collection, Deque, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple)

import pyarrow

from . import _batch, _core
from ._scan import ScanReader
from ._steps import ArchiveName, Emit, Steps
from ._wire_columns import AnyPage, ColumnLister, WirePage
from .errors import DocumentNotFound, DocumentWithdrawn, ServerFault
from .records import ArchiveInfo, WithdrawnCount

if TYPE_CHECKING:
    from .client import Archive

TEXT = "text"
# In the order in which they come by default.
COLUMNS = ("id", "ordinal", "size", "time", "type", "record_type")
# Bound on the text of a batch with several documents.
_BATCH_SIZE_BYTES = 4 << 20
_FIELD_TYPES = {"string": pyarrow.large_string(), "integer": pyarrow.int64(),
                "float": pyarrow.float64(), "boolean": pyarrow.bool_(),
                "time": pyarrow.timestamp("us", tz="UTC")}
_NUMBERS = {"ordinal": "ordinals", "size": "sizes"}
_NAMES = {"type": "media_types", "record_type": "record_types"}


def to_arrow(archive: "Archive", columns: Optional[Sequence[str]], text: bool,
             where: Optional[str], prefix: Optional[bytes], binary: Collection[str],
             withdrawn: Optional[WithdrawnCount]) -> Any:
    """See Archive.to_arrow()."""
    # pylint: disable=protected-access
    client = archive.client
    info = archive.info()
    names = _checked_columns(columns, text, info.fields)
    strings = {"id", TEXT, *(name for name, kind in info.fields.items() if kind == "string")}
    if isinstance(binary, str) or set(binary) - strings:
        raise ValueError(f"binary must be some of {', '.join(sorted(strings))}, got {binary!r}")
    schema = make_schema(names, info, binary)
    pinned = ArchiveName(info.name, info.uuid)
    listing = _Listing(client._core, pinned, info, prefix, where, names,
                       {name: info.fields[name] for name in names
                        if name in info.fields and name != TEXT})
    maker = _Maker(schema, names, list(listing.fields))
    counted = WithdrawnCount() if withdrawn is None else withdrawn
    if TEXT not in names:
        batches = client._iterate(_list_batches(listing, maker, counted))
    elif listing.is_whole:
        batches = client._iterate(_scan_batches(listing, maker, counted))
    else:
        batches = _read_batches(client, listing, maker, counted)
    if withdrawn is None:
        batches = _warned(batches, counted, info)
    return pyarrow.RecordBatchReader.from_batches(schema, batches)


def _warned(batches: Iterator[Any], withdrawn: WithdrawnCount, info: ArchiveInfo) -> Iterator[Any]:
    """The batches; warns at their end of documents that were left out."""
    yield from batches
    if withdrawn.count:
        warnings.warn(f"{info.name} has {withdrawn.count} withdrawn documents, which are left "
                      "out; pass withdrawn=WithdrawnCount() to count them without a warning")


class _Listing(NamedTuple):
    """The documents that are wanted."""

    core: _core.Core
    archive: ArchiveName
    info: ArchiveInfo
    prefix: Optional[bytes]
    where: Optional[str]
    # Columns that are wanted; and types of the fields among them, by name.
    names: Sequence[str]
    fields: Mapping[str, str]

    @property
    def is_whole(self) -> bool:
        """All documents, in the order of the archive."""
        return self.prefix is None and self.where is None

    def start(self) -> ColumnLister:
        """Pages from the start."""
        return ColumnLister(self.core, self.archive, self.prefix, self.names,
                            TEXT in self.names and self.is_whole, self.fields, self.where)


def _checked_columns(columns: Optional[Sequence[str]], text: bool,
                     fields: Mapping[str, str]) -> List[str]:
    known = (*COLUMNS, *fields, TEXT)
    if columns is None:
        if TEXT in fields:
            raise ValueError("the archive has a field called text, which no column can have; "
                             "name the columns")
        return [*known] if text else [*COLUMNS, *fields]
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in known:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(known)}")
        if names.count(name) > 1:
            raise ValueError(f"column {name!r} is named twice")
    # Named columns are all columns: `text` adds its own only to the default.
    return names


def make_schema(names: Sequence[str], info: ArchiveInfo, binary: Collection[str]) -> Any:
    """The schema of columns. Its metadata name the archive, its contents, and the number of
    documents with those that are withdrawn."""
    unknown = {name: kind for name, kind in info.fields.items() if kind not in _FIELD_TYPES}
    if unknown:
        raise ServerFault(f"the server has fields of types that this client does not know: "
                          f"{unknown}")
    types = {"id": pyarrow.large_binary() if "id" in binary else pyarrow.large_string(),
             "ordinal": pyarrow.int64(), "size": pyarrow.int64(),
             "time": pyarrow.timestamp("ms", tz="UTC"),
             "type": pyarrow.string(), "record_type": pyarrow.string(),
             TEXT: pyarrow.large_binary() if TEXT in binary else pyarrow.large_string()}
    for name, kind in info.fields.items():
        types.setdefault(name, pyarrow.large_binary() if name in binary else _FIELD_TYPES[kind])
    required = {"id", "ordinal", "size", TEXT}
    return pyarrow.schema(
        [pyarrow.field(name, types[name], nullable=name not in required) for name in names],
        metadata={"quire.archive": info.name, "quire.uuid": info.uuid,
                  "quire.document_count": str(info.document_count)})


def _binary(offsets: Sequence[int], data: bytes) -> Any:
    """A large_binary column; `offsets` has one more entry than the column."""
    return pyarrow.Array.from_buffers(
        pyarrow.large_binary(), len(offsets) - 1,
        [None, pyarrow.py_buffer(array.array("q", offsets)), pyarrow.py_buffer(data)])


class _Maker:
    """Makes record batches of pages."""

    def __init__(self, schema: Any, names: Sequence[str], fields: List[str]) -> None:
        self._schema = schema
        self._names = names
        # In the order of Page.fields.
        self._fields = fields

    def batch(self, page: AnyPage, begin: int = 0, end: Optional[int] = None,
              text: Any = None) -> Any:
        """Rows [begin, end) of a page; all by default. `text`: their column."""
        end = page.count if end is None else end
        ordinals = page.ordinals[begin:end]
        make = self._wire_column if isinstance(page, WirePage) else self._column
        return pyarrow.RecordBatch.from_arrays(
            [_as_string(text, self._schema.field(name).type, name, ordinals) if name == TEXT
             else make(name, page, begin, end, ordinals) for name in self._names],
            schema=self._schema)

    def _wire_column(self, name: str, page: Any, begin: int, end: int,
                     ordinals: List[int]) -> Any:
        kind = self._schema.field(name).type
        found = page.column(name)
        if found is None:
            return pyarrow.nulls(end - begin, kind)
        found = found.slice(begin, end - begin)
        if name not in _NAMES:
            # Of times, the numbers.
            return _as_string(found, kind, name, ordinals)
        try:
            return found.cast(pyarrow.large_string()).cast(kind)
        except pyarrow.ArrowInvalid as error:
            raise ServerFault(f"the server listed documents with a bad {name}: {error}") from None

    def _column(self, name: str, page: Any, begin: int, end: int, ordinals: List[int]) -> Any:
        kind = self._schema.field(name).type
        if name == "id":
            ids = page.ids[begin:end]
            offsets = list(itertools.accumulate(map(len, ids), initial=0))
            return _as_string(_binary(offsets, b"".join(ids)), kind, name, ordinals)
        if name in _NUMBERS:
            values = array.array("q", getattr(page, _NUMBERS[name])[begin:end])
            return pyarrow.Array.from_buffers(kind, end - begin,
                                              [None, pyarrow.py_buffer(values)])
        if name in self._fields:
            return self._field(page.fields[self._fields.index(name)][begin:end], kind, name,
                               ordinals)
        found = page.times_ms if name == "time" else getattr(page, _NAMES[name])
        if found is None:
            return pyarrow.nulls(end - begin, kind)
        try:
            return pyarrow.array(found[begin:end], kind)
        except pyarrow.ArrowInvalid as error:
            raise ServerFault(f"the server listed documents with a bad {name}: {error}") from None


    @staticmethod
    def _field(values: List[Any], kind: Any, name: str, ordinals: List[int]) -> Any:
        if pyarrow.types.is_large_string(kind) or pyarrow.types.is_large_binary(kind):
            return _as_string(pyarrow.array(values, pyarrow.large_binary()), kind, name, ordinals)
        return pyarrow.array(values, kind)


def _as_string(column: Any, kind: Any, name: str, ordinals: Sequence[int]) -> Any:
    """The column, of type `kind`: large_binary or large_string."""
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pyarrow.ArrowInvalid:
        for ordinal, value in zip(ordinals, column):
            try:
                (value.as_py() or b"").decode()
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"the {name} of document {ordinal} is not UTF-8, as a string is: {error}; "
                    f"name {name!r} in `binary`, to have bytes") from None
        raise


def _without(batch: Any, rows: Collection[int]) -> Any:
    """The batch without some rows."""
    if not rows:
        return batch
    return batch.filter(pyarrow.array([row not in rows for row in range(batch.num_rows)]))


def _list_batches(listing: _Listing, maker: _Maker, withdrawn: WithdrawnCount) -> Steps[None]:
    """Emits the batches of a listing."""
    lister = listing.start()
    while (answer := (yield from lister.next_page())) is not None:
        page = lister.page_of(answer)
        if page.count:
            yield Emit((maker.batch(page),))
    if listing.is_whole:
        yield from listing.core.count_unlisted(listing.archive, lister,
                                               listing.info.document_count, withdrawn)


# --- Text of all documents, from a scan.

class _ScannedText:
    """Bytes of a scan, from the begin of a document on."""

    def __init__(self, reader: ScanReader, offset: int) -> None:
        self._reader = reader
        # Offsets in the archive: of the first piece, and of the end of the last one.
        self._begin = offset
        self._end = offset
        self._pieces: Deque[bytes] = collections.deque()

    def take(self, spans: Sequence[Tuple[int, int]]) -> Steps[Tuple[bytes, List[int]]]:
        """The bytes of ascending spans (begin, end), and where pieces end among them. Drops
        what precedes them."""
        while self._end < spans[-1][1]:
            piece = yield from self._reader.next_piece()
            if piece is None:
                raise ServerFault(f"documents end at offset {spans[-1][1]}, after the archive")
            self._end += len(piece)
            if self._end <= spans[0][0]:
                # In a withdrawn document.
                self._begin = self._end
                continue
            self._pieces.append(piece)
        parts: List[Any] = []
        ends: List[int] = []
        size = 0
        for begin, end in spans:
            while begin < end:
                while self._begin + len(self._pieces[0]) <= begin:
                    self._begin += len(self._pieces.popleft())
                piece = self._pieces[0]
                part = memoryview(piece)[begin - self._begin:end - self._begin]
                begin += len(part)
                size += len(part)
                parts.append(part)
                ends.append(size)
        return (bytes(parts[0]) if len(parts) == 1 else b"".join(parts)), ends


def _spans(page: AnyPage, begin: int, end: int) -> List[Tuple[int, int]]:
    """The bytes of rows [begin, end), neighbours as one span."""
    spans: List[Tuple[int, int]] = []
    offsets, sizes = page.offsets[begin:end], page.sizes[begin:end]
    ends = list(itertools.accumulate(sizes, initial=offsets[0]))
    if offsets == ends[:-1]:
        return [(offsets[0], ends[-1])]
    for offset, size in zip(offsets, sizes):
        if spans and offset == spans[-1][1]:
            spans[-1] = (spans[-1][0], offset + size)
        else:
            spans.append((offset, offset + size))
    return spans


def _ends_of(page: AnyPage, offset: int) -> List[int]:
    """Where the documents of a page end. Raises ServerFault if one begins before the end of
    the one before it, the first before `offset`."""
    ends = list(map(operator.add, page.offsets, page.sizes))
    begins = page.offsets
    if begins[0] < offset or any(map(operator.lt, begins[1:], ends)):
        raise ServerFault(f"the server listed documents {page.ordinals[0]} to "
                          f"{page.ordinals[-1]} at offsets that overlap")
    return ends


def _scan_batches(listing: _Listing, maker: _Maker, withdrawn: WithdrawnCount) -> Steps[None]:
    """Emits the batches of all documents, with their text."""
    core, archive, info = listing.core, listing.archive, listing.info
    lister = listing.start()
    text: Optional[_ScannedText] = None
    page_end = 0
    while (answer := (yield from lister.next_page())) is not None:
        page = lister.page_of(answer)
        if not page.count:
            continue
        row_ends = _ends_of(page, page_end)
        page_end = row_ends[-1]
        begin = 0
        while begin < page.count:
            if text is None:
                reader = yield from core.open_scan(archive, page.offsets[0], None, info)
                text = _ScannedText(reader, page.offsets[0])
            # One document at least.
            end = max(begin + 1, bisect.bisect_right(
                row_ends, page.offsets[begin] + _BATCH_SIZE_BYTES, begin))
            data, ends = yield from text.take(_spans(page, begin, end))
            offsets = list(itertools.accumulate(page.sizes[begin:end], initial=0))
            batch = maker.batch(page, begin, end, _binary(offsets, data))
            # A document may have been withdrawn after it was listed: a scan then has zeros.
            removed = yield from _withdrawn_rows(core, archive, page.ordinals[begin:end], offsets,
                                                 data, ends)
            withdrawn.count += len(removed)
            yield Emit((_without(batch, removed),))
            begin = end
    yield from core.count_unlisted(archive, lister, info.document_count, withdrawn)


def _withdrawn_rows(core: _core.Core, archive: ArchiveName, ordinals: Sequence[int],
                    offsets: Sequence[int], data: bytes, ends: Sequence[int]) -> Steps[List[int]]:
    """Rows whose bytes are zeros from the begin of their last piece on, or from their own, as
    they were withdrawn; `ends`: of the pieces."""
    rows: List[int] = []
    if b"\0" not in data:
        return rows
    for row, (ordinal, end) in enumerate(zip(ordinals, offsets[1:])):
        begin = offsets[row]
        if begin == end or data[end - 1]:
            continue
        piece = bisect.bisect_left(ends, end)
        begin = max(begin, ends[piece - 1] if piece else 0)
        if data.count(0, begin, end) == end - begin and (
                yield from core.is_withdrawn(archive, ordinal)):
            rows.append(row)
    return rows


# --- Text of some documents, each read.

def _read_batches(client: Any, listing: _Listing, maker: _Maker,
                  withdrawn: WithdrawnCount) -> Iterator[Any]:
    """The batches of listed documents, with their text."""
    # pylint: disable=protected-access
    pages: Deque[AnyPage] = collections.deque()

    def list_pages() -> Steps[None]:
        lister = listing.start()
        while (answer := (yield from lister.next_page())) is not None:
            yield Emit((lister.page_of(answer),))

    def ordinals() -> Iterator[int]:
        for page in client._iterate(list_pages()):
            if page.count:
                pages.append(page)
                yield from page.ordinals

    answers = client._iterate(_batch.get_many(listing.core, listing.archive, True), ordinals())
    for answer in answers:
        page = pages.popleft()
        yield from _batches_of_page(page, itertools.chain((answer,), answers), maker, withdrawn)


def _batches_of_page(page: AnyPage, answers: Iterator[Any], maker: _Maker,
                     withdrawn: WithdrawnCount) -> Iterator[Any]:
    """The batches of a page; takes an answer for each of its rows."""
    begin = row = size = 0
    texts: List[bytes] = []
    removed: List[int] = []
    for answer in itertools.islice(answers, page.count):
        data = b""
        if isinstance(answer.error, (DocumentWithdrawn, DocumentNotFound)):
            removed.append(row - begin)
            withdrawn.count += 1
        else:
            data = answer.data
        texts.append(data)
        size += len(data)
        row += 1
        if size >= _BATCH_SIZE_BYTES or row == page.count:
            offsets = list(itertools.accumulate(map(len, texts), initial=0))
            yield _without(maker.batch(page, begin, row, _binary(offsets, b"".join(texts))),
                           removed)
            begin, size, texts, removed = row, 0, [], []
