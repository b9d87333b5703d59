# SPDX-License-Identifier: Apache-2.0
"""Reads many documents in one BatchRead stream."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Tuple, TypeVar

from google.protobuf.message import DecodeError
from xxhash import xxh3_64_intdigest

from . import _messages as messages
from ._answers import Decoding, check_answer
from ._core import Core
from ._retries import Retries
from ._steps import KEYS, ArchiveName, Close, Emit, Open, Pull, Receive, Send, Sleep, Steps
from .errors import AnswerDamaged, DictionaryNotFound, QuireError, ServerFault, from_item
from .records import (WITHDRAWN_TYPE, Answer, Key, Span, Target, checked_range, fill, resolve)

# Size of one message of items, below what servers accept.
_MESSAGE_SIZE_MAX = 1 << 20
# Bound on answers that are requested and not yet taken, by their mean size so far; the
# first are taken to have this one.
_WINDOW_SIZE_BYTES = 64 << 20
_FIRST_MEAN_SIZE_BYTES = 32 << 10
_WINDOW_ITEMS_MIN = 16
_UINT64_MAX = 2**64 - 1
T = TypeVar("T")
_LIMIT_EXCEEDED = messages.ERROR_REASONS["LIMIT_EXCEEDED"]
_SERVER_BUSY = messages.ERROR_REASONS["SERVER_BUSY"]
_WITHDRAWN = WITHDRAWN_TYPE.encode()


class Batch:
    """One get_many(): keys in, answers out.

    Each key has a number. A key that was sent is in _pending until it is answered;
    with `ordered` an answer then waits in _ready for those before it. Keys that are
    pending when the stream breaks are sent again.
    """

    METHOD = "BatchRead"

    def __init__(self, core: Core, archive: ArchiveName, ordered: bool) -> None:
        self._core = core
        self._archive = archive
        self._ordered = ordered
        self._pending: Dict[int, Any] = {}
        self._ready: Dict[int, Answer] = {}
        self._next_number = 0
        self._next_emitted = 0
        self._has_all_keys = False
        self._wants_keys = True
        self._answer_count = 1
        self._answer_size_bytes = _FIRST_MEAN_SIZE_BYTES
        self._retries = Retries(core)
        self._stream: Any = None
        self._has_closed_sending = False

    # How a key is resolved, and sent with its number.

    def _resolve(self, key: Any) -> Any:
        return resolve(key)

    def _encode(self, number: int, target: Any) -> bytes:
        return encode_item(number, target)

    def run(self) -> Steps[None]:
        """Emits an Answer for each key. Raises what fails the batch as a whole."""
        limits = yield from self._core.limits(self._archive)
        decoding = yield from self._core.decoding(self._archive, wants_stored=False)
        while True:
            try:
                yield from self._send_more(limits, decoding)
                if not self._pending:
                    break
                message = yield Receive(self._stream, self._wants_keys)
                if message is KEYS:
                    continue
                if message is None:
                    raise AnswerDamaged("the server ended the batch without an answer to "
                                        f"{len(self._pending)} items")
                self._retries.note_progress()
                yield from self._take(message, decoding)
            except DictionaryNotFound:
                decoding = Decoding(self._core, False)
                yield from self._close()
            except QuireError as error:
                yield from self._close()
                delay = self._retries.delay_after_stream(error)
                if delay is None:
                    raise self._retries.final_error(error) from None
                yield Sleep(delay)
        yield from self._finish()

    # --- Sending.

    def _send_more(self, limits: Any, decoding: Decoding) -> Steps[None]:
        if self._stream is None and self._pending:
            yield from self._send(list(self._pending.items()), limits, decoding)
        window = min(limits.batch_pending_items_max, max(
            _WINDOW_ITEMS_MIN,
            _WINDOW_SIZE_BYTES * self._answer_count // max(1, self._answer_size_bytes)))
        room = window - len(self._pending) - len(self._ready)
        # Few messages with many items each.
        self._wants_keys = not self._has_all_keys and room * 4 >= window
        if self._wants_keys:
            # Further keys may depend on the answers to these.
            keys, self._has_all_keys = yield Pull(room, may_wait=not self._pending)
            self._wants_keys = not self._has_all_keys and len(keys) < room
            first = self._next_number
            self._next_number += len(keys)
            items = list(enumerate(map(self._resolve, keys), first))
            self._pending.update(items)
            yield from self._send(items, limits, decoding)
        if self._has_all_keys and self._stream is not None and not self._has_closed_sending:
            self._has_closed_sending = True
            yield Send(self._stream, None)

    def _send(self, items: List[Any], limits: Any, decoding: Decoding) -> Steps[None]:
        if not items:
            return
        parts: List[bytes] = []
        if self._stream is None:
            self._stream = yield Open(self.METHOD, self._archive.name,
                                      attempt=self._retries.attempt)
            self._has_closed_sending = False
            request = self._archive.set(messages.BatchReadRequest())
            decoding.set(request)
            parts.append(request.SerializeToString())
        size_bytes = count = 0
        items_max = limits.batch_message_items_max
        for number, target in items:
            item = self._encode(number, target)
            size = len(item)
            if count and (count == items_max or size_bytes + size > _MESSAGE_SIZE_MAX):
                yield Send(self._stream, b"".join(parts))
                parts = []
                size_bytes = count = 0
            parts.append(item)
            size_bytes += size
            count += 1
        yield Send(self._stream, b"".join(parts))

    def _close(self) -> Steps[None]:
        if self._stream is not None:
            yield Close(self._stream)
            self._stream = None

    def _finish(self) -> Steps[None]:
        if self._stream is not None:
            try:
                yield Receive(self._stream)
            except QuireError:
                # All answers are here; how the call ends changes nothing.
                pass
            yield from self._close()

    # --- Answers.

    def _take(self, message: Any, decoding: Decoding) -> Steps[None]:
        found: List[Answer] = []
        pending, identity = self._pending, messages.IDENTITY
        size_bytes = 0
        try:
            for result in message.results:
                number = result.tag
                target = pending.get(number)
                if target is None:
                    raise ServerFault("the server answered an item of the batch that was not "
                                      "asked, or twice")
                if result.encoding == identity and not result.HasField("status"):
                    try:
                        answer = check_answer(target, result, decoding)
                    except QuireError as error:
                        # A bad answer is the item's error.
                        answer = Answer(target.key, None, b"", error)
                else:
                    answer = yield from self._answer(result, target, decoding)
                del pending[number]
                # pylint: disable=protected-access
                size_bytes += len(answer._data) + 1
                if self._ordered:
                    self._ready[number] = answer
                else:
                    found.append(answer)
        except QuireError:
            # These are not pending any more.
            if found:
                yield Emit(found)
            raise
        self._answer_count += len(message.results)
        self._answer_size_bytes += size_bytes
        if self._ordered:
            found = list(self._in_order())
        if found:
            yield Emit(found)

    def _in_order(self) -> Iterable[Answer]:
        ready, number = self._ready, self._next_emitted
        while (answer := ready.pop(number, None)) is not None:
            number += 1
            yield answer
        self._next_emitted = number

    def _answer(self, result: Any, target: Target, decoding: Decoding) -> Steps[Answer]:
        if result.HasField("status") and result.status.code:
            if result.status.reason in (_LIMIT_EXCEEDED, _SERVER_BUSY):
                # Alone, which waits for a busy server.
                read = (self._core.read_large(self._archive, target)
                        if result.status.reason == _LIMIT_EXCEEDED
                        else self._core.read(self._archive, target.key))
                try:
                    return (yield from read)
                except QuireError as error:
                    return Answer(target.key, None, b"", error)
            return Answer(target.key, None, b"", from_item(result.status))
        yield from decoding.prepare(result)
        try:
            return check_answer(target, result, decoding)
        except QuireError as error:
            return Answer(target.key, None, b"", error)


# The documents of a message by ordinal, and the errors of others.
Read = Tuple[Dict[int, bytes], Dict[int, QuireError]]


class OrdinalBatch(Batch):
    """A batch of documents by ordinal, without their descriptions: a fifth of the time.

    Keys are ordinals; emits a Read for each message, in the order in which the server answers.

    The results of a message are parsed as one whose fields are repeated, which makes no object
    for each. That needs a value of each field in each result, so that it is done only for a
    message of plain documents: see _take_merged().
    """

    METHOD = "BatchRead as bytes"

    def __init__(self, core: Core, archive: ArchiveName, mean_size: int) -> None:
        """`mean_size`: of the documents, in bytes; keys for 64 MiB are sent at once."""
        super().__init__(core, archive, ordered=False)
        self._answer_size_bytes = max(1, mean_size)
        # A tag of 0 would be absent.
        self._next_number = 1

    def _resolve(self, key: int) -> int:
        return key

    def _encode(self, number: int, target: int) -> bytes:
        return messages.ordinal_field(number, target)

    def _take(self, message: bytes, decoding: Decoding) -> Steps[None]:
        found = self._take_merged(message)
        errors: Dict[int, QuireError] = {}
        if found is None:
            found = {}
            try:
                for result in _parse(messages.BatchReadResponse, message).results:
                    yield from self._take_one(result, decoding, found, errors)
            except QuireError:
                # These are not pending any more.
                yield Emit(((found, errors),))
                raise
        self._answer_count += len(found) + len(errors)
        self._answer_size_bytes += sum(map(len, found.values()))
        yield Emit(((found, errors),))

    def _take_merged(self, message: bytes) -> Optional[Dict[int, bytes]]:
        """The documents of a message. None, and nothing is taken, unless all are documents that
        were asked, not empty, not withdrawn, unencoded and undamaged."""
        results = _parse(messages.MergedResponse, message).results
        document = results.document
        data, offsets = list(results.data), list(results.range.offset)
        sizes, ordinals = list(map(len, data)), list(document.ordinal)
        if len(results.status) or list(results.encoding) != [messages.IDENTITY] * len(data) \
                or not len(offsets) == len(ordinals) == len(data) \
                or list(document.range.offset) != offsets \
                or list(results.range.size_bytes) != sizes \
                or list(document.range.size_bytes) != sizes \
                or _WITHDRAWN in document.record_type \
                or list(results.checksum) != list(map(xxh3_64_intdigest, data)):
            return None
        pending = self._pending
        tags = list(results.tag)
        asked = [pending.pop(tag, None) for tag in tags]
        if asked != ordinals:
            pending.update((tag, ordinal) for tag, ordinal in zip(tags, asked)
                           if ordinal is not None)
            return None
        return dict(zip(ordinals, data))

    def _take_one(self, result: Any, decoding: Decoding, found: Dict[int, bytes],
                  errors: Dict[int, QuireError]) -> Steps[None]:
        """Adds the answer in a result to one of both."""
        ordinal = self._pending.get(result.tag)
        if ordinal is None:
            raise ServerFault("the server answered an item of the batch that was not asked, or "
                              "twice")
        answer = yield from self._answer(result, Target(ordinal, ordinal, None), decoding)
        if answer.error is None:
            # pylint: disable=protected-access
            found[ordinal] = answer._data
        else:
            errors[ordinal] = answer.error
        del self._pending[result.tag]


def _parse(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise ServerFault(f"the server sent a malformed message of a batch: {error}") from None


def encode_item(number: int, target: Target) -> bytes:
    """A field `items` of a BatchReadRequest, with this tag: the index of the key."""
    key, name, part = target
    if part is None and not isinstance(key, Key):
        if isinstance(name, bytes):
            return messages.id_field(number, name)
        if isinstance(name, int):
            return messages.ordinal_field(number, name)
    # Most ranges need no call. Other types may still be integers, such as numpy's.
    if part is not None and not (type(part[0]) is type(part[1]) is int
                                 and 0 <= part[0] <= _UINT64_MAX
                                 and 0 <= part[1] <= _UINT64_MAX):
        part = checked_range(part, f"keys[{number}]: a range")
    if name is None and part is not None:
        return messages.range_field(number, messages.byte_range(*part))
    if isinstance(name, bytes) and isinstance(key, Key) and key.at is None \
            and key.record_types is None and key.occurrence is None and not key.with_revisits:
        return messages.part_field(number, name,
                                   b"" if part is None else messages.byte_range(*part))
    item = messages.BatchItem(tag=number)
    fill(target, item)
    return messages.item_field(item.SerializeToString())


def several(keys: T) -> T:
    """`keys`. Raises TypeError for a single key: the characters of a str are none."""
    if isinstance(keys, (str, bytes, bytearray, Key, Span)):
        raise TypeError(f"get_many takes several keys; read() takes one, such as {keys!r}")
    return keys


def get_many(core: Core, archive: ArchiveName, ordered: bool) -> Steps[None]:
    """See Archive.get_many()."""
    return Batch(core, archive, ordered).run()
