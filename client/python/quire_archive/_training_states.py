# SPDX-License-Identifier: Apache-2.0
"""Shares of an epoch, and the states from which it resumes."""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, Iterator, List, Tuple

# Mark of a state, and its version.
FORMAT = "quire-training-1"
_RUN_KEYS = ("format", "uuid", "size", "count", "seed", "epoch", "start", "taken", "offsets",
             "ranks", "workers", "batch_size", "remainder", "window_size")


class StateMismatch(ValueError):
    """A state does not fit the dataset, its archive, or the other states."""


@dataclasses.dataclass(frozen=True)
class Share:
    """Positions of an epoch's order that one worker of one rank reads.

    Those from `start` to `count` are dealt to the ranks one by one: rank r has start + r,
    start + r + ranks, ... Of these the workers of a rank have batches in turn: worker w has
    batches w, w + workers, ... of batch_size positions.
    """

    start: int
    count: int
    rank: int
    ranks: int
    worker: int
    workers: int
    batch_size: int
    # If the ranks' shares would be unequal: True, the larger ones are cut; False, the others
    # repeat documents from the begin of the order.
    drops: bool

    def rank_size(self) -> int:
        """Positions of each rank, all workers together."""
        rest = self.count - self.start
        return rest // self.ranks if self.drops else -(-rest // self.ranks)

    def __len__(self) -> int:
        batches, tail = divmod(self.rank_size(), self.batch_size)
        own = len(range(self.worker, batches, self.workers)) * self.batch_size
        return own + (tail if batches % self.workers == self.worker else 0)

    def position(self, index: int) -> int:
        """The index-th of them, from 0; `count` or more stands for one that is repeated."""
        batch, place = divmod(index, self.batch_size)
        return self.start + self.rank + self.ranks * (
            (self.worker + batch * self.workers) * self.batch_size + place)

    def ordered_positions(self, first: int, size: int) -> List[int]:
        """Those from the index `first` on, at most `size`, as positions of the order."""
        found: List[int] = []
        end = min(len(self), first + size)
        while first < end:
            batch_end = min(end, (first // self.batch_size + 1) * self.batch_size)
            begin = self.position(first)
            found += range(begin, begin + (batch_end - first) * self.ranks, self.ranks)
            first = batch_end
        # The last batch may repeat some.
        return [position % self.count for position in found] \
            if found and found[-1] >= self.count else found


def states_in(found: Any) -> Iterator[Dict[str, Any]]:
    """The states of DocumentStream in a state of a loader, or in a list of such."""
    if isinstance(found, dict):
        if found.get("format") == FORMAT:
            yield found
            return
        found = list(found.values())
    if isinstance(found, (list, tuple)):
        for inner in found:
            yield from states_in(inner)


def combine_states(states: Any) -> Dict[str, Any]:
    """One state of those of all workers, with which any number of ranks and workers resumes.

    states: what state_dict() of a DocumentStream, or of a StatefulDataLoader with one,
        returned; of several ranks a list of these, taken after the same step.

    Without windows of tokens the states of one rank are enough: the others have then read as
    many batches. Raises StateMismatch.
    """
    found = list(states_in(states))
    if not found:
        raise StateMismatch("found no state of a DocumentStream; give state_dict() of a stream "
                            "or loader")
    first = found[0]
    if first["ranks"] is None:
        if len(found) > 1:
            raise StateMismatch("a combined state cannot be combined with others")
        return first
    by_share: Dict[Tuple[int, int], Dict[str, Any]] = {}
    for state in found:
        for key in _RUN_KEYS:
            if state[key] != first[key]:
                raise StateMismatch(f"the states are of different runs: {key} is {first[key]!r} "
                                    f"in one and {state[key]!r} in another")
        if (state["rank"], state["worker"]) in by_share:
            raise StateMismatch(f"there are two states of worker {state['worker']} of rank "
                                f"{state['rank']}; combine those of one step")
        by_share[state["rank"], state["worker"]] = state
    given = {rank for rank, _ in by_share}
    ranks = range(first["ranks"])
    missing = [(rank, worker) for rank in (ranks if first["window_size"] else sorted(given))
               for worker in range(first["workers"]) if (rank, worker) not in by_share]
    if missing:
        raise StateMismatch("the state of worker {1} of rank {0} is missing; combine the states of "
                            "all workers{2}".format(*missing[0], ", and of all ranks, as windows "
                            "end differently in each" if first["window_size"] else ""))
    least = {worker: min((by_share[rank, worker] for rank in given),
                         key=lambda state: state["consumed"])
             for worker in range(first["workers"])}
    for rank in set(ranks) - given:
        for worker, state in least.items():
            by_share[rank, worker] = {**state, "rank": rank, "withdrawn": 0}
    return _merge(list(by_share.values()))


def _merge(states: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The combined state of the states of all shares."""
    first = states[0]
    count = first["count"]
    shares = [(share_of(state), state) for state in states]
    start = min(min((share.position(state["consumed"]) for share, state in shares
                     if state["consumed"] < len(share)), default=count), count)
    taken = [position for position in first["taken"] if position >= start]
    for share, state in shares:
        for index in reversed(range(min(state["consumed"], len(share)))):
            position = share.position(index)
            if position < start:
                break
            if position < count:
                taken.append(position)
    offsets = dict(first["offsets"])
    for share, state in shares:
        if state["token_offset"]:
            offsets[share.position(state["consumed"])] = state["token_offset"]
    gone = set(taken)
    return {**first, "start": start, "taken": sorted(gone),
            "offsets": [(position, offset) for position, offset in sorted(offsets.items())
                        if position >= start and position not in gone],
            "ranks": None, "rank": None, "workers": None, "worker": None,
            "consumed": 0, "token_offset": 0,
            "withdrawn": sum(state["withdrawn"] for state in states),
            "dropped_tokens": sum(state["dropped_tokens"] for state in states)}


def share_of(state: Dict[str, Any]) -> Share:
    """The share that a state is of."""
    return Share(state["start"], state["count"], state["rank"], state["ranks"], state["worker"],
                 state["workers"], state["batch_size"], state["remainder"] == "drop")
