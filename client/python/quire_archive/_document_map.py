# SPDX-License-Identifier: Apache-2.0
"""Documents by number: a map-style dataset of torch, and a data source of grain."""
from __future__ import annotations

import operator
import warnings
from typing import Any, Callable, Iterable, List, Optional, SupportsIndex, Union

from . import _pinned_contents
from ._item_kinds import converter
from .client import Archive
from .errors import DocumentNotFound, DocumentWithdrawn


class DocumentMap:
    """The documents of an archive, by ordinal; of one state of it.

        loader = DataLoader(DocumentMap("127.0.0.1:7420", "docs"), batch_size=256, shuffle=True,
                            num_workers=4, collate_fn=list)

    A batch is one call of the server, many times as fast as single reads. Workers may be
    forked, or started by spawn or forkserver: see DocumentStream, also for the arguments.

    Withdrawn documents keep their numbers: reading one raises DocumentWithdrawn or
    DocumentNotFound. Batches leave them out, with a warning; withdrawn_count is their number
    in this process.
    """

    def __init__(self, archive: Union[Archive, str], name: Optional[str] = None, *,
                 kind: str = "document",
                 transform: Optional[Callable[[Any], Any]] = None) -> None:
        archive = _pinned_contents.as_archive(archive, name)
        contents = _pinned_contents.describe(archive)
        self._archive = Archive(archive.client, archive.name, contents.uuid)
        self._size = contents.document_count
        self._convert = converter(kind)
        self._transform = transform
        self.withdrawn_count = 0

    def __repr__(self) -> str:
        # grain compares the text of a source with that of a saved state.
        return f"DocumentMap({self._archive.name!r}, uuid {self._archive.uuid}, {self._size})"

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: SupportsIndex) -> Any:
        number = self._ordinal(index)
        return self._item(number, self._archive.read(number))

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> List[Any]:
        """Those that are not withdrawn, in order: a batch of torch. Raises IndexError before
        any is read."""
        found = []
        for answer in self._archive.get_many(list(map(self._ordinal, indices))):
            if isinstance(answer.error, (DocumentWithdrawn, DocumentNotFound)):
                self.withdrawn_count += 1
                warnings.warn(f"{self._archive.name} has withdrawn documents: batches leave them "
                              "out, and withdrawn_count is their number", stacklevel=2)
            else:
                found.append(self._item(answer.key, answer.data))  # type: ignore[arg-type]
        return found

    def _ordinal(self, index: SupportsIndex) -> int:
        number = operator.index(index)
        if not -self._size <= number < self._size:
            raise IndexError(f"{number} is not in {-self._size} to {self._size - 1}")
        return number % self._size

    def _item(self, number: int, data: bytes) -> Any:
        item = self._convert(number, data)
        return item if self._transform is None else self._transform(item)
