# SPDX-License-Identifier: Apache-2.0
"""Archives as Arrow record batches: see Archive.to_arrow(). Needs pyarrow."""
from __future__ import annotations

import array
import bisect
import collections
import itertools
import operator
import warnings
from typing import TYPE_CHECKING, Any, Collection, Deque, Iterator, List, Optional, Sequence, Tuple

import pyarrow

from . import _batch, _core
from ._columns import ColumnLister, Page
from ._core import ScanReader
from ._steps import ArchiveName, Emit, Steps
from .errors import DocumentNotFound, DocumentWithdrawn, ServerFault
from .records import ArchiveInfo, WithdrawnCount

if TYPE_CHECKING:
    from .client import Archive

TEXT = "text"
# In the order in which they come by default.
COLUMNS = ("id", "ordinal", "size", "time", "type", "record_type")
# Bound on the text of a batch with several documents.
_BATCH_SIZE_BYTES = 4 << 20
_NUMBERS = {"ordinal": "ordinals", "size": "sizes"}
_NAMES = {"type": "media_types", "record_type": "record_types"}


def to_arrow(archive: "Archive", columns: Optional[Sequence[str]], text: bool,
             prefix: Optional[bytes], binary: Collection[str],
             withdrawn: Optional[WithdrawnCount]) -> Any:
    """See Archive.to_arrow()."""
    if isinstance(binary, str) or set(binary) - {"id", TEXT}:
        raise ValueError(f'binary must be some of "id" and "text", got {binary!r}')
    names = _checked_columns(columns, text)
    # pylint: disable=protected-access
    client = archive.client
    info = archive.info()
    schema = make_schema(names, info, binary)
    maker = _Maker(schema, names)
    pinned = ArchiveName(info.name, info.uuid)
    counted = WithdrawnCount() if withdrawn is None else withdrawn
    core = client._core
    if TEXT not in names:
        batches = client._iterate(_list_batches(core, pinned, info, prefix, maker, counted))
    elif prefix is None:
        batches = client._iterate(_scan_batches(core, pinned, info, maker, counted))
    else:
        batches = _read_batches(client, pinned, info, prefix, maker, counted)
    if withdrawn is None:
        batches = _warned(batches, counted, info)
    return pyarrow.RecordBatchReader.from_batches(schema, batches)


def _warned(batches: Iterator[Any], withdrawn: WithdrawnCount, info: ArchiveInfo) -> Iterator[Any]:
    """The batches; warns at their end of documents that were left out."""
    yield from batches
    if withdrawn.count:
        warnings.warn(f"{info.name} has {withdrawn.count} withdrawn documents, which are left "
                      "out; pass withdrawn=WithdrawnCount() to count them without a warning")


def _checked_columns(columns: Optional[Sequence[str]], text: bool) -> List[str]:
    if columns is None:
        return [*COLUMNS, TEXT] if text else list(COLUMNS)
    names = [columns] if isinstance(columns, str) else list(columns)
    known = (*COLUMNS, TEXT)
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
    types = {"id": pyarrow.large_binary() if "id" in binary else pyarrow.large_string(),
             "ordinal": pyarrow.int64(), "size": pyarrow.int64(),
             "time": pyarrow.timestamp("ms", tz="UTC"),
             "type": pyarrow.string(), "record_type": pyarrow.string(),
             TEXT: pyarrow.large_binary() if TEXT in binary else pyarrow.large_string()}
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

    def __init__(self, schema: Any, names: Sequence[str]) -> None:
        self._schema = schema
        self._names = names

    def batch(self, page: Page, begin: int = 0, end: Optional[int] = None,
              text: Any = None) -> Any:
        """Rows [begin, end) of a page; all by default. `text`: their column."""
        end = page.count if end is None else end
        ordinals = page.ordinals[begin:end]
        return pyarrow.RecordBatch.from_arrays(
            [self._column(name, page, begin, end, ordinals, text) for name in self._names],
            schema=self._schema)

    def _column(self, name: str, page: Page, begin: int, end: int, ordinals: List[int],
                text: Any) -> Any:
        kind = self._schema.field(name).type
        if name == TEXT:
            return _as_string(text, kind, name, ordinals)
        if name == "id":
            ids = page.ids[begin:end]
            offsets = list(itertools.accumulate(map(len, ids), initial=0))
            return _as_string(_binary(offsets, b"".join(ids)), kind, name, ordinals)
        if name in _NUMBERS:
            values = array.array("q", getattr(page, _NUMBERS[name])[begin:end])
            return pyarrow.Array.from_buffers(kind, end - begin,
                                              [None, pyarrow.py_buffer(values)])
        found = page.times_ms if name == "time" else getattr(page, _NAMES[name])
        if found is None:
            return pyarrow.nulls(end - begin, kind)
        try:
            return pyarrow.array(found[begin:end], kind)
        except pyarrow.ArrowInvalid as error:
            raise ServerFault(f"the server listed documents with a bad {name}: {error}") from None


def _as_string(column: Any, kind: Any, name: str, ordinals: Sequence[int]) -> Any:
    """The column, of type `kind`: large_binary or large_string."""
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pyarrow.ArrowInvalid:
        for ordinal, value in zip(ordinals, column):
            try:
                value.as_py().decode()
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


def _list_batches(core: _core.Core, archive: ArchiveName, info: ArchiveInfo,
                  prefix: Optional[bytes], maker: _Maker,
                  withdrawn: WithdrawnCount) -> Steps[None]:
    """Emits the batches of a listing."""
    lister = ColumnLister(core, archive, prefix)
    while (answer := (yield from lister.next_page())) is not None:
        page = lister.page_of(answer)
        if page.count:
            yield Emit((maker.batch(page),))
    if prefix is None:
        yield from core.count_unlisted(archive, lister, info.document_count, withdrawn)


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


def _spans(page: Page, begin: int, end: int) -> List[Tuple[int, int]]:
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


def _ends_of(page: Page, offset: int) -> List[int]:
    """Where the documents of a page end. Raises ServerFault if one begins before the end of
    the one before it, the first before `offset`."""
    ends = list(map(operator.add, page.offsets, page.sizes))
    begins = page.offsets
    if begins[0] < offset or any(map(operator.lt, begins[1:], ends)):
        raise ServerFault(f"the server listed documents {page.ordinals[0]} to "
                          f"{page.ordinals[-1]} at offsets that overlap")
    return ends


def _scan_batches(core: _core.Core, archive: ArchiveName, info: ArchiveInfo, maker: _Maker,
                  withdrawn: WithdrawnCount) -> Steps[None]:
    """Emits the batches of all documents, with their text."""
    lister = ColumnLister(core, archive, None)
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

def _read_batches(client: Any, archive: ArchiveName, info: ArchiveInfo, prefix: bytes,
                  maker: _Maker, withdrawn: WithdrawnCount) -> Iterator[Any]:
    """The batches of listed documents, with their text."""
    # pylint: disable=protected-access
    core = client._core
    pages: Deque[Page] = collections.deque()

    def list_pages() -> Steps[None]:
        lister = ColumnLister(core, archive, prefix)
        while (answer := (yield from lister.next_page())) is not None:
            yield Emit((lister.page_of(answer),))

    def ordinals() -> Iterator[int]:
        for page in client._iterate(list_pages()):
            if page.count:
                pages.append(page)
                yield from page.ordinals

    answers = client._iterate(_batch.get_many(core, archive, True), ordinals())
    for answer in answers:
        page = pages.popleft()
        yield from _batches_of_page(page, itertools.chain((answer,), answers), maker, withdrawn)


def _batches_of_page(page: Page, answers: Iterator[Any], maker: _Maker,
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
