# SPDX-License-Identifier: Apache-2.0
"""Documents of an archive in a shuffled order, for training.

    from quire_archive.training import DocumentStream

    stream = DocumentStream(quire_archive.connect("127.0.0.1:7420")["docs"], seed=1)
    loader = DataLoader(stream, batch_size=None, num_workers=4, collate_fn=collate)
    for epoch in range(2):
        stream.set_epoch(epoch)
        for batch in loader:
            ...

DocumentStream reads all documents in an order that depends on seed, epoch and count only, and
resumes; with torch installed it is a torch IterableDataset. DocumentMap reads documents by
number: a map-style dataset of torch, and a data source of grain. make_ray_datasource() is for
Ray Data. docs/training.md states the order, the state and what they cost.

torch is imported by the first use of DocumentStream, if it is installed; nothing needs it.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._shuffle_order import Order
from ._training_states import StateMismatch, combine_states

if TYPE_CHECKING:
    from ._document_map import DocumentMap
    from ._document_stream import DocumentStream
    from ._ray_source import make_ray_datasource

__all__ = ["DocumentMap", "DocumentStream", "Order", "StateMismatch", "combine_states",
           "make_ray_datasource"]
# Modules of which some import other packages.
_MODULES = {"DocumentMap": "._document_map", "DocumentStream": "._document_stream", "make_ray_datasource": "._ray_source"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name], __package__), name)
