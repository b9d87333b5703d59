# SPDX-License-Identifier: Apache-2.0
"""A data source of Ray Data."""
from __future__ import annotations

from typing import Any, Iterable, List, Optional, Union

import pyarrow
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from . import _pinned_contents
from .client import Archive
from .errors import DocumentNotFound, DocumentWithdrawn

# Documents of one block, at most.
_BLOCK_DOCUMENTS = 4096


class _ArchiveSource(Datasource):  # type: ignore[misc]
    """Contiguous documents in each task; those that are withdrawn are left out."""

    def __init__(self, archive: Archive, contents: _pinned_contents.Contents) -> None:
        super().__init__()
        self._archive = archive
        self._contents = contents

    def get_name(self) -> str:
        """Name in logs."""
        return f"Quire({self._contents.name})"

    def estimate_inmemory_data_size(self) -> Optional[int]:
        """In bytes."""
        return self._contents.size

    def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> List[Any]:
        """At most `parallelism` tasks of about equal numbers of documents."""
        count = self._contents.document_count
        tasks = max(1, min(parallelism, count))
        bounds = [number * count // tasks for number in range(tasks + 1)]
        archive = self._archive

        def make_task(first: int, end: int) -> Any:
            # Rows are not counted, as some of the documents may be withdrawn.
            metadata = BlockMetadata(
                num_rows=None, size_bytes=self._contents.size * (end - first) // max(1, count),
                input_files=None, exec_stats=None)
            return ReadTask(lambda: _read_blocks(archive, first, end), metadata)
        return [make_task(first, end) for first, end in zip(bounds, bounds[1:])]


def _read_blocks(archive: Archive, first: int, end: int) -> Iterable[Any]:
    for begin in range(first, end, _BLOCK_DOCUMENTS):
        found = []
        for answer in archive.get_many(range(begin, min(end, begin + _BLOCK_DOCUMENTS))):
            if isinstance(answer.error, (DocumentWithdrawn, DocumentNotFound)):
                continue
            data, document = answer.data, answer.document
            assert document is not None
            found.append((document.ordinal, document.id, data))
        yield pyarrow.table({
            "ordinal": pyarrow.array([ordinal for ordinal, _, _ in found], pyarrow.uint64()),
            "id": pyarrow.array([name for _, name, _ in found], pyarrow.binary()),
            "data": pyarrow.array([data for _, _, data in found], pyarrow.large_binary())})


def make_ray_datasource(archive: Union[Archive, str], name: Optional[str] = None) -> Any:
    """The documents of an archive for ray.data.read_datasource(), in the order of the archive.

    Rows have `ordinal`, `id` and `data`, both bytes. Withdrawn documents are left out: the
    archive's number of documents less that of the rows is how many. Needs the packages
    ray[data] and pyarrow. Arguments: as those of DocumentStream.
    """
    archive = _pinned_contents.as_archive(archive, name)
    contents = _pinned_contents.describe(archive)
    return _ArchiveSource(Archive(archive.client, archive.name, contents.uuid), contents)
