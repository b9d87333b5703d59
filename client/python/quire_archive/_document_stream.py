# SPDX-License-Identifier: Apache-2.0
"""An iterable dataset: all documents in the shuffled order."""
from __future__ import annotations

import bisect
import collections
import itertools
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _pinned_contents, _training_states
from ._item_kinds import converter
from ._look_ahead import LookAhead
from ._shuffle_order import Order
from ._stored import optional_module
from ._token_buffer import TokenBuffer
from ._training_states import Share, StateMismatch
from .client import Archive

torch_data = optional_module("torch.utils.data")
torch_distributed = optional_module("torch.distributed")
_Base: Any = torch_data.IterableDataset if torch_data is not None else object

LOOK_AHEAD_DOCUMENTS = 16384
LOOK_AHEAD_BYTES = 32 << 20
# Positions whose ordinals are computed together.
_ORDINALS_STEP = 2048
_REMAINDERS = ("pad", "drop")


class DocumentStream(_Base):  # type: ignore[misc]
    """All documents of an archive once per epoch, in the order of Order, as batches.

    Iterating yields lists: of documents (bytes), of records (parsed JSON), or of windows of
    tokens, each a list of window_size. For a DataLoader with batch_size=None, of torch or
    torchdata, with any number of workers; without torch it can be iterated as it is.

    archive: an Archive, or the address of a server, with `name`. If it is not pinned, it is
        pinned to what the server has now, which a process of its own asks. No other call is
        made before the first item, so workers may be forked.
    rank, ranks: of this process; by default those of torch.distributed if that is initialized.
    kind: "document" or "record".
    transform: called with each document or record; its results are the items of batches.
    tokenizer: called with each in its place; returns its tokens, the same at each call.
        Windows of window_size tokens go across documents.
    remainder: if the ranks have different shares: "pad", the smaller ones repeat documents of
        the begin of the order; "drop", the larger ones are cut. At the end of a worker's
        tokens: "pad", the last window is filled with pad_token; "drop", it is left out, and
        dropped_tokens has their number.
    allow_redacted: resume although documents were redacted since the state was saved. Those
        that come after it are left out, and counted.
    look_ahead_documents, look_ahead_bytes: limits of a window of documents that is read
        ahead; a worker has two windows in memory.

    Withdrawn documents are left out, and withdrawn_count has their number; such a batch is
    smaller, and absent if it would be empty.

    With persistent workers, or iterated directly, each epoch that was read to its end is
    followed by the next one. Otherwise call set_epoch() before each.
    """

    def __init__(self, archive: Union[Archive, str], name: Optional[str] = None, *,
                 seed: int = 0, batch_size: int = 256, rank: Optional[int] = None,
                 ranks: Optional[int] = None, kind: str = "document",
                 transform: Optional[Callable[[Any], Any]] = None,
                 tokenizer: Optional[Callable[[Any], Sequence[int]]] = None,
                 window_size: Optional[int] = None, pad_token: Optional[int] = None,
                 remainder: str = "pad", allow_redacted: bool = False,
                 look_ahead_documents: int = LOOK_AHEAD_DOCUMENTS,
                 look_ahead_bytes: int = LOOK_AHEAD_BYTES) -> None:
        if (rank is None) != (ranks is None):
            raise ValueError("give rank and ranks together")
        if rank is None or ranks is None:
            rank, ranks = _distributed_rank()
        if not 0 <= rank < ranks:
            raise ValueError(f"rank must be 0 to ranks - 1, got rank {rank} of {ranks}")
        if remainder not in _REMAINDERS:
            raise ValueError(f"remainder must be one of {', '.join(_REMAINDERS)}, "
                             f"got {remainder!r}")
        if (tokenizer is None) != (window_size is None):
            raise ValueError("give tokenizer and window_size together")
        if tokenizer is not None and transform is not None:
            raise ValueError("give transform or tokenizer, not both")
        if tokenizer is not None and remainder == "pad" and pad_token is None:
            raise ValueError('remainder="pad" needs a pad_token for the last window of tokens; '
                             'give one, or remainder="drop"')
        for what, number in (("batch_size", batch_size), ("window_size", window_size or 1),
                             ("look_ahead_documents", look_ahead_documents),
                             ("look_ahead_bytes", look_ahead_bytes)):
            if number < 1:
                raise ValueError(f"{what} must be at least 1, got {number}")
        archive = _pinned_contents.as_archive(archive, name)
        self._contents = _pinned_contents.describe(archive)
        self._archive = Archive(archive.client, archive.name, self._contents.uuid)
        self._rank, self._ranks = rank, ranks
        self._batch_size = batch_size
        self._convert = converter(kind)
        self._transform = transform
        self._tokenizer = tokenizer
        self._window_size = window_size
        self._pad_token = pad_token
        self._remainder = remainder
        self._allow_redacted = allow_redacted
        self._limits = (look_ahead_documents, look_ahead_bytes)
        self._seed = seed
        self._set_start(0)
        Order(self._contents.document_count, seed)

    # --- Epochs and states.

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is of this epoch, from its begin."""
        self._set_start(epoch)

    def _set_start(self, epoch: int) -> None:
        self._epoch = epoch
        # A combined state from which iterations of this epoch begin.
        self._start = 0
        self._taken: List[int] = []
        self._offsets: List[Tuple[int, int]] = []
        # The share of this process, once it is known, and what was consumed of it.
        self._share: Optional[Share] = None
        self._consumed = self._token_offset = 0
        self._resumes = False
        # Withdrawn documents that this epoch has left out, up to the last batch.
        self.withdrawn_count = 0
        # Tokens of the last windows that this epoch has left out.
        self.dropped_tokens = 0

    @property
    def epoch(self) -> int:
        """The epoch of the current iteration, or of the next one."""
        return self._epoch

    @property
    def document_count(self) -> int:
        """Documents of an epoch of all ranks, with those that are withdrawn."""
        return self._contents.document_count

    def state_dict(self) -> Dict[str, Any]:
        """The state after the last batch; numbers, text, and lists of numbers only."""
        share = self._share if self._share is not None else self._own_share()
        contents = self._contents
        return {
            "format": _training_states.FORMAT, "uuid": contents.uuid, "size": contents.size,
            "count": contents.document_count, "seed": self._seed, "epoch": self._epoch,
            "start": self._start, "taken": self._taken, "offsets": self._offsets,
            "ranks": self._ranks, "rank": self._rank, "workers": share.workers,
            "worker": share.worker, "batch_size": self._batch_size,
            "remainder": self._remainder, "window_size": self._window_size,
            "consumed": self._consumed, "token_offset": self._token_offset,
            "withdrawn": self.withdrawn_count, "dropped_tokens": self.dropped_tokens}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """The next iteration resumes after the last batch of the state.

        state: of state_dict(), for the same rank and number of workers; or of
            combine_states(), for any.

        Raises StateMismatch if the archive, seed, batch size or another option of the order
        is another one. Does not contact the server.
        """
        if not isinstance(state, dict) or state.get("format") != _training_states.FORMAT:
            raise StateMismatch("this is not a state of a DocumentStream; of a state of a "
                                "StatefulDataLoader make one with combine_states()")
        for key, own in (("seed", self._seed), ("batch_size", self._batch_size),
                         ("remainder", self._remainder), ("window_size", self._window_size)):
            if state[key] != own:
                raise StateMismatch(f"{key} is {own!r}, but {state[key]!r} in the state; resume "
                                    "with that of the state")
        self._use_contents(state)
        self._set_start(state["epoch"])
        self._start = state["start"]
        self._taken, self._offsets = list(state["taken"]), list(state["offsets"])
        if state["ranks"] is not None:
            if (state["ranks"], state["rank"]) != (self._ranks, self._rank):
                raise StateMismatch(
                    f"this is rank {self._rank} of {self._ranks}, but the state is of rank "
                    f"{state['rank']} of {state['ranks']}; combine_states() makes one for any")
            self._share = _training_states.share_of(state)
        self._consumed, self._token_offset = state["consumed"], state["token_offset"]
        self.withdrawn_count = state["withdrawn"]
        self.dropped_tokens = state["dropped_tokens"]
        self._resumes = True

    def _use_contents(self, state: Dict[str, Any]) -> None:
        """Pins the archive to the contents of the state, or to those after a redaction."""
        known = self._contents
        wanted = (state["size"], state["count"])
        if state["uuid"] == known.uuid and wanted == (known.size, known.document_count):
            return
        if any(state["uuid"] == earlier.uuid for earlier in known.redacted):
            if wanted != (known.size, known.document_count):
                raise StateMismatch(
                    f"archive {known.name} was redacted and has other documents: "
                    f"{known.document_count} with {known.size} bytes, but the state is of "
                    f"{state['count']} with {state['size']} bytes; begin a new run")
            if not self._allow_redacted:
                raise StateMismatch(
                    f"documents of archive {known.name} were redacted since the state was "
                    "saved; with allow_redacted=True the run resumes without them")
            return
        for earlier in known.earlier:
            if state["uuid"] == earlier.uuid and wanted == (earlier.size,
                                                            earlier.document_count):
                # Documents were appended; the run has those that it had.
                self._contents = earlier
                self._archive = Archive(self._archive.client, known.name, earlier.uuid)
                return
        raise StateMismatch(f"the state is of uuid {state['uuid']}, but archive {known.name} has "
                            f"uuid {known.uuid}: it was replaced; begin a new run")

    # --- Iteration.

    def __iter__(self) -> Iterator[List[Any]]:
        share = self._begin()
        yield from self._windows(share) if self._window_size else self._batches(share)

    def _begin(self) -> Share:
        """The share of an iteration that begins now."""
        share = self._own_share()
        loaded = self._share
        if not self._resumes and loaded is not None:
            # Again from the begin; after an epoch's end the next one.
            self._set_start(self._epoch + (self._consumed >= len(loaded)))
        elif loaded not in (None, share):
            assert loaded is not None
            raise StateMismatch(
                f"this is worker {share.worker} of {share.workers}, but the state is of worker "
                f"{loaded.worker} of {loaded.workers}; combine_states() makes one for any number "
                "of workers")
        elif self._resumes and loaded is None and (share.rank or share.worker):
            # Of a combined state; the first share carries on the sums.
            self.withdrawn_count = self.dropped_tokens = 0
        self._resumes = False
        self._share = share = self._own_share()
        return share

    def _own_share(self) -> Share:
        info = torch_data.get_worker_info() if torch_data is not None else None
        worker, workers = (info.id, info.num_workers) if info is not None else (0, 1)
        return Share(self._start, self._contents.document_count, self._rank, self._ranks,
                     worker, workers, self._batch_size, self._remainder == "drop")

    def _read_ahead(self, share: Share) -> Iterator[
            Tuple[Sequence[int], List[int], List[Optional[bytes]]]]:
        """Windows of (indices in the share, ordinals, bytes) of those that were not consumed;
        None for bytes if the document is withdrawn. Those that were taken before are absent."""
        order = Order(share.count, self._seed, self._epoch)
        taken = frozenset(self._taken)
        # Indices that have a document to be read; only if others have none.
        indices: Deque[int] = collections.deque()

        def ordinals() -> Iterator[int]:
            for first in range(begin, len(share), _ORDINALS_STEP):
                positions = share.ordered_positions(first, _ORDINALS_STEP)
                if taken:
                    wanted = [(index, position) for index, position in enumerate(positions, first)
                              if position not in taken or share.position(index) != position]
                    indices.extend(index for index, _ in wanted)
                    positions = [position for _, position in wanted]
                yield from order.ordinals(positions)

        begin = at = self._consumed
        ahead = LookAhead(self._archive, ordinals(), *self._limits)
        try:
            for asked, found in ahead:
                yield ([indices.popleft() for _ in asked] if taken
                       else range(at, at + len(asked))), asked, found
                at += len(asked)
        finally:
            ahead.close()

    def _batches(self, share: Share) -> Iterator[List[Any]]:
        batch: List[Any] = []
        withdrawn = 0
        end = self._batch_end(self._consumed, share)
        for indices, ordinals, found in self._read_ahead(share):
            first = 0
            while first < len(found):
                last = bisect.bisect_left(indices, end, first)
                items = self._items(ordinals[first:last], found[first:last])
                batch += items
                withdrawn += last - first - len(items)
                # Also if the rest of the batch was taken before.
                if last < len(found) or indices[last - 1] == end - 1:
                    yield from self._hand_over(batch, end, withdrawn)
                    batch, withdrawn = [], 0
                    end = self._batch_end(end, share)
                first = last
        yield from self._hand_over(batch, len(share), withdrawn)

    def _items(self, ordinals: List[int], found: List[Optional[bytes]]) -> List[Any]:
        """The items of those that are not withdrawn."""
        convert = self._convert
        items = [convert(ordinal, data) for ordinal, data in zip(ordinals, found)
                 if data is not None]
        return items if self._transform is None else list(map(self._transform, items))

    def _batch_end(self, index: int, share: Share) -> int:
        return min(len(share), (index // self._batch_size + 1) * self._batch_size)

    def _hand_over(self, batch: List[Any], end: int, withdrawn: int) -> Iterator[List[Any]]:
        # Before the batch is yielded: a state that is taken then has it.
        self._consumed = end
        self.withdrawn_count += withdrawn
        if batch:
            yield batch

    def _windows(self, share: Share) -> Iterator[List[Any]]:
        assert self._window_size is not None and self._tokenizer is not None
        offsets = dict(self._offsets)
        if self._token_offset:
            offsets[share.position(self._consumed)] = self._token_offset
        buffer = TokenBuffer(self._consumed, self._token_offset)
        withdrawn_before = self.withdrawn_count
        size = self._batch_size * self._window_size
        for index, ordinal, data in itertools.chain.from_iterable(
                zip(*window) for window in self._read_ahead(share)):
            tokens = None if data is None else self._tokenizer(self._convert(ordinal, data))
            buffer.add(index, tokens, offsets.get(share.position(index), 0))
            while len(buffer) >= size:
                batch = self._cut(buffer.take(size))
                self._consumed, self._token_offset = buffer.consumed, buffer.token_offset
                self.withdrawn_count = withdrawn_before + buffer.withdrawn_count
                yield batch
        rest = buffer.take(len(buffer))
        self._consumed, self._token_offset = len(share), 0
        self.withdrawn_count = withdrawn_before + buffer.withdrawn_count
        tail = len(rest) % self._window_size
        if tail and self._remainder == "pad":
            assert self._pad_token is not None
            rest += [self._pad_token] * (self._window_size - tail)
        elif tail:
            self.dropped_tokens += tail
            del rest[-tail:]
        if rest:
            yield self._cut(rest)

    def _cut(self, tokens: List[int]) -> List[List[int]]:
        assert self._window_size is not None
        return [tokens[first:first + self._window_size]
                for first in range(0, len(tokens), self._window_size)]


def _distributed_rank() -> Tuple[int, int]:
    """Rank and number of ranks of torch.distributed; (0, 1) without."""
    if torch_distributed is not None and torch_distributed.is_available() \
            and torch_distributed.is_initialized():
        return torch_distributed.get_rank(), torch_distributed.get_world_size()
    return 0, 1
