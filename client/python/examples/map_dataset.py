# SPDX-License-Identifier: Apache-2.0
"""A map-style dataset of an archive, as torch.utils.data.DataLoader takes it.

Workers of a DataLoader unpickle the dataset and connect on their own. Use
multiprocessing_context="spawn" or "forkserver": gRPC does not survive a fork.
__getitems__ makes one batch call of each batch, many times as fast as single reads.

    loader = DataLoader(DocumentDataset("127.0.0.1:7420", "docs"), batch_size=256,
                        num_workers=4, multiprocessing_context="spawn",
                        collate_fn=list)
"""
from __future__ import annotations

from typing import Any, Callable, List, Optional

import quire_archive


class DocumentDataset:
    """The documents of an archive, by ordinal; of one state of it."""

    def __init__(self, server: Optional[str], archive: str,
                 transform: Callable[[bytes], Any] = bytes, **options: Any) -> None:
        client = quire_archive.connect(server, **options)
        info = client[archive].info()
        client.close()
        # A client that was not used yet: it connects where it is used.
        self._archive = quire_archive.connect(server, **options).archive(archive, info.uuid)
        self._size = info.document_count
        self._transform = transform

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Any:
        if not -self._size <= index < self._size:
            raise IndexError(index)
        return self._transform(self._archive.read(index % self._size))

    def __getitems__(self, indices: List[int]) -> List[Any]:
        return [self._transform(answer.data) for answer in self._archive.get_many(indices)]
