# SPDX-License-Identifier: Apache-2.0
"""A map-style dataset of an archive, as torch.utils.data.DataLoader takes it.

    loader = DataLoader(DocumentDataset("127.0.0.1:7420", "docs"), batch_size=256,
                        num_workers=4, collate_fn=list)

__getitems__ makes one batch call of each batch, many times as fast as single reads.

Each process that reads connects on its own: workers that are forked, by spawn, or by
forkserver. gRPC does not survive a fork, so the constructor asks for the number of
documents in a process of its own. Before workers are forked, read nothing in the process
that forks them, neither from the dataset nor with another client.
"""
from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any, Callable, List, Optional

import quire_archive

_ASK_FOR_INFO = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
archive = pickle.load(sys.stdin.buffer)
try:
    found = archive.info()
except Exception as error:
    found = error
pickle.dump(found, sys.stdout.buffer)
"""


def _info_of(archive: quire_archive.Archive) -> quire_archive.ArchiveInfo:
    asked = subprocess.run(
        [sys.executable, "-c", _ASK_FOR_INFO], check=True, stdout=subprocess.PIPE,
        input=pickle.dumps(sys.path) + pickle.dumps(archive)).stdout
    found = pickle.loads(asked)
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, quire_archive.ArchiveInfo)
    return found


class DocumentDataset:
    """The documents of an archive, by ordinal; of one state of it.

    Withdrawn documents keep their ordinals: reading one raises DocumentWithdrawn or
    DocumentNotFound. Batches leave them out, with a warning; such a batch is smaller.
    """

    def __init__(self, server: Optional[str], archive: str,
                 transform: Callable[[bytes], Any] = bytes, **options: Any) -> None:
        # Not connected before it reads.
        client = quire_archive.connect(server, **options)
        info = _info_of(client.archive(archive))
        self._archive = client.archive(archive, info.uuid)
        self._size = info.document_count
        self._transform = transform
        # Withdrawn documents that batches of this process have left out.
        self.withdrawn_count = 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Any:
        if not -self._size <= index < self._size:
            raise IndexError(index)
        return self._transform(self._archive.read(index % self._size))

    def __getitems__(self, indices: List[int]) -> List[Any]:
        found = []
        for answer in self._archive.get_many(indices):
            if isinstance(answer.error, (quire_archive.DocumentWithdrawn,
                                         quire_archive.DocumentNotFound)):
                self.withdrawn_count += 1
                warnings.warn(f"{self._archive.name} has withdrawn documents: batches leave them "
                              "out, and withdrawn_count is their number", stacklevel=2)
            else:
                found.append(self._transform(answer.data))
        return found
