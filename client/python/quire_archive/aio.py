# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio: as the blocking one, with `await` and `async for`."""
from __future__ import annotations

import asyncio
import collections
import itertools
from typing import (Any, AsyncIterable, AsyncIterator, Deque, Dict, Iterable, List, Optional,
                    Sequence, Set, Tuple, TypeVar, Union)

import grpc

from . import _batch, _core, _listing, _messages, _options, _payload, _steps, _stored
from ._steps import ArchiveName, Steps
from .client import make_key
from .errors import CallCancelled, DeadlinePassed, QuireError, from_rpc
from .records import (Answer, AnyKey, ArchiveInfo, Capture, Document, Payload, Prefix, Span,
                      Time, WithdrawnCount, to_id)

T = TypeVar("T")
Keys = Union[Iterable[AnyKey], AsyncIterable[AnyKey]]
_CLOSED = "the client was closed during the call"


def connect_async(server: Optional[str] = None, **options: Any) -> "AsyncClient":
    """Returns a client for asyncio. Takes the options of connect()."""
    return AsyncClient(_options.make_options(server, options))


class AsyncClient:
    """A connection to a server, for the event loop that makes its first call.

    An asynchronous context manager. Can be pickled, as Client; the same holds for
    forked children.
    """

    def __init__(self, options: _options.Options) -> None:
        self._options = options
        self._core = _core.Core(options)
        self._calls: Dict[str, Any] = {}
        self._channel: Any = None
        # Calls that began before the last of these have ended.
        self._close_count = 0
        # Waits of calls between attempts.
        self._sleeps: Set[Any] = set()
        self._metadata: Any = None

    def __reduce__(self) -> Any:
        return AsyncClient, (self._options,)

    def __repr__(self) -> str:
        return f"AsyncClient({self._options.server!r})"

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all calls, with CallCancelled. The next call connects again, in its event loop."""
        channel, self._channel = self._channel, None
        self._calls = {}
        self._close_count += 1
        for sleep in self._sleeps:
            sleep.cancel()
        if channel is not None:
            await channel.close()

    async def archives(self) -> List[ArchiveInfo]:
        """As Client.archives()."""
        return await self._run(self._core.archives())

    def archive(self, name: str, uuid: Optional[str] = None) -> "AsyncArchive":
        """As Client.archive()."""
        return AsyncArchive(self, name, uuid)

    def __getitem__(self, name: str) -> "AsyncArchive":
        return self.archive(name)

    # --- Carries out steps.

    def _call(self, method: str) -> Any:
        _options.check_not_forked()
        if self._channel is None:
            self._metadata = _options.call_metadata(self._options)
            self._channel = _options.open_channel(self._options, grpc.aio)
            self._calls = {
                name: getattr(self._channel, found.kind)(
                    found.path, request_serializer=_messages.serializer(found),
                    response_deserializer=_messages.deserializer(found))
                for name, found in _messages.METHODS.items()}
        return self._calls[method]

    async def _run(self, steps: Steps[T]) -> T:
        with _Run(self, steps) as run:
            await run.next()
            result: T = run.result
            return result

    async def _collect(self, steps: Steps[None], keys: Keys = ()) -> List[Any]:
        """All that the steps emit; less work for each than _iterate()."""
        found: List[Any] = []
        with _Run(self, steps, keys) as run:
            while (values := await run.next()) is not None:
                found += values
        return found

    async def _iterate(self, steps: Steps[None], keys: Keys = ()) -> AsyncIterator[Any]:
        with _Run(self, steps, keys) as run:
            while (values := await run.next()) is not None:
                for value in values:
                    yield value


class _Stream:
    def __init__(self, call: Any, requests: Optional["asyncio.Queue[Any]"]) -> None:
        self.call = call
        self.requests = requests
        # A read that is waited for again after keys came first.
        self.reading: Any = None


class _KeyPump:
    """Takes keys from an asynchronous iterator, in a task of its own, so that answers
    are received while the iterator waits."""

    def __init__(self, keys: AsyncIterable[AnyKey]) -> None:
        self._keys = keys
        self._ready: Deque[AnyKey] = collections.deque()
        self._wanted = 0
        # What the iterator raised, CancelledError included.
        self._error: Optional[BaseException] = None
        self._has_ended = False
        self._room = asyncio.Event()
        self._task: Any = None
        # Set if keys, or their end, can be pulled.
        self.came = asyncio.Event()

    async def pull(self, count: int, may_wait: bool) -> Tuple[List[AnyKey], bool]:
        """See _steps.Pull."""
        self._wanted = count
        self._room.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        # Keys that are there already come now.
        await asyncio.sleep(0)
        if may_wait:
            await self.came.wait()
        keys = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        if self._ready:
            return keys, False
        if self._error is not None and not keys:
            raise self._error
        has_ended = self._has_ended and self._error is None
        if not self._has_ended:
            self.came.clear()
        self._room.set()
        return keys, has_ended

    def stop(self) -> None:
        """Ends the task."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            async for key in self._keys:
                self._ready.append(key)
                self.came.set()
                while len(self._ready) >= self._wanted:
                    self._room.clear()
                    await self._room.wait()
        except BaseException as error:  # pylint: disable=broad-exception-caught
            self._error = error
        finally:
            self._has_ended = True
            self.came.set()


async def _requests_of(requests: "asyncio.Queue[Any]") -> AsyncIterator[Any]:
    while (request := await requests.get()) is not None:
        yield request


class _Run:
    """Carries out the steps of one call of a client. A context manager."""

    # Return value of the steps.
    result: Any = None

    def __init__(self, client: AsyncClient, steps: Steps[Any], keys: Keys = ()) -> None:
        self._client = client
        self._close_count = client._close_count  # pylint: disable=protected-access
        self._steps = steps
        self._pump = _KeyPump(keys) if isinstance(keys, AsyncIterable) else None
        self._keys: Any = iter(()) if isinstance(keys, AsyncIterable) else iter(keys)
        self._streams: List[_Stream] = []
        self._started: List[Any] = []

    def __enter__(self) -> "_Run":
        return self

    async def next(self) -> Optional[Sequence[Any]]:
        """What the steps emit next; None at their end."""
        steps = self._steps
        try:
            step = next(steps)
            while not isinstance(step, _steps.Emit):
                try:
                    reply = await self._perform(step)
                except QuireError as error:
                    if isinstance(step, _steps.Pull):
                        raise
                    step = steps.throw(error)
                else:
                    step = steps.send(reply)
            return step.values
        except StopIteration as end:
            self.result = end.value
            return None

    def __exit__(self, *_: object) -> None:
        """Cancels what the steps left open."""
        if _options.is_forked():
            return
        if self._pump is not None:
            self._pump.stop()
        for stream in self._streams:
            stream.call.cancel()
        for started in self._started:
            started.cancel()

    async def _perform(self, step: _steps.Step) -> Any:
        """The result of a step. Raises QuireError."""
        # pylint: disable=protected-access
        client = self._client
        if isinstance(step, _steps.Close):
            step.stream.call.cancel()
            self._streams.remove(step.stream)
            return None
        if self._is_closed():
            raise CallCancelled(_CLOSED)
        if isinstance(step, _steps.Receive):
            return await self._receive(step.stream, step.or_keys)
        if isinstance(step, _steps.Call):
            call = client._call(step.method)
            return await self._answer(
                call(step.request, timeout=step.timeout,
                     metadata=_options.with_route(client._metadata, step.archive, step.attempt)))
        if isinstance(step, _steps.Send):
            step.stream.requests.put_nowait(step.message)
            return None
        if isinstance(step, _steps.Pull):
            if self._pump is not None:
                return await self._pump.pull(step.count, step.may_wait)
            keys = list(itertools.islice(self._keys, step.count))
            return keys, len(keys) < step.count
        if isinstance(step, _steps.Open):
            return self._open(step)
        if isinstance(step, _steps.Start):
            started = client._call(step.method)(
                step.request, timeout=step.timeout,
                metadata=_options.with_route(client._metadata, step.archive))
            self._started = [started]
            return started
        if isinstance(step, _steps.Compute):
            computed = asyncio.get_running_loop().run_in_executor(_stored.threads(), step.function)
            # asyncio reports errors that are never retrieved.
            computed.add_done_callback(lambda future: future.cancelled() or future.exception())
            return computed
        if isinstance(step, _steps.Finish):
            return await self._answer(step.started)
        assert isinstance(step, _steps.Sleep)
        return await self._sleep(step.seconds)

    async def _sleep(self, seconds: float) -> None:
        """Until the client is closed, at most."""
        sleeps = self._client._sleeps  # pylint: disable=protected-access
        sleep = asyncio.ensure_future(asyncio.sleep(seconds))
        sleeps.add(sleep)
        try:
            await sleep
        except asyncio.CancelledError:
            self._raise_if_closed()
            raise
        finally:
            sleep.cancel()
            sleeps.discard(sleep)

    async def _answer(self, call: Any) -> Any:
        try:
            return await call
        except asyncio.CancelledError:
            self._raise_if_closed()
            raise
        except grpc.RpcError as error:
            raise from_rpc(error, self._client._options.server) from None

    def _is_closed(self) -> bool:
        # pylint: disable=protected-access
        return self._client._close_count != self._close_count

    def _raise_if_closed(self) -> None:
        """grpc reports the end of a closed channel as a cancellation of the task."""
        task = asyncio.current_task()
        # Before Python 3.11 a task does not say whether it is cancelled itself.
        is_cancelled = getattr(task, "cancelling", lambda: 0)() > 0
        if self._is_closed() and not is_cancelled:
            raise CallCancelled(_CLOSED) from None

    def _open(self, step: _steps.Open) -> _Stream:
        # pylint: disable=protected-access
        client = self._client
        call = client._call(step.method)
        metadata = _options.with_route(client._metadata, step.archive, step.attempt)
        if step.request is not None:
            stream = _Stream(call(step.request, metadata=metadata), None)
        else:
            requests: "asyncio.Queue[Any]" = asyncio.Queue()
            stream = _Stream(call(_requests_of(requests), metadata=metadata), requests)
        self._streams.append(stream)
        return stream

    async def _next_message(self, stream: _Stream, or_keys: bool) -> Any:
        """The next message, grpc.aio.EOF, or KEYS. Raises TimeoutError."""
        idle_max = self._client._options.idle_max  # pylint: disable=protected-access
        if stream.reading is None:
            if self._pump is None or not or_keys:
                return await asyncio.wait_for(stream.call.read(), idle_max)
            stream.reading = asyncio.ensure_future(stream.call.read())
            # asyncio reports errors that are never retrieved.
            stream.reading.add_done_callback(
                lambda reading: reading.cancelled() or reading.exception())
        awaited = [stream.reading]
        if self._pump is not None and or_keys:
            awaited.append(asyncio.ensure_future(self._pump.came.wait()))
        try:
            done, _ = await asyncio.wait(awaited, timeout=idle_max,
                                         return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in awaited[1:]:
                other.cancel()
        if not done:
            raise asyncio.TimeoutError
        if not stream.reading.done():
            return _steps.KEYS
        reading, stream.reading = stream.reading, None
        return reading.result()

    async def _receive(self, stream: _Stream, or_keys: bool) -> Any:
        # pylint: disable=protected-access
        options = self._client._options
        try:
            message = await self._next_message(stream, or_keys)
        except asyncio.TimeoutError:
            raise DeadlinePassed(f"{options.server} sent nothing for {options.idle_max:g} "
                                 "seconds") from None
        except asyncio.CancelledError:
            self._raise_if_closed()
            raise
        except grpc.RpcError as error:
            raise from_rpc(error, options.server) from None
        if message is not grpc.aio.EOF:
            return message
        # The end may be an error, which read() of some versions does not raise.
        code = await stream.call.code()
        if code is not grpc.StatusCode.OK:
            raise from_rpc(grpc.aio.AioRpcError(
                code, await stream.call.initial_metadata(),
                await stream.call.trailing_metadata(), await stream.call.details()),
                options.server)
        return None


class AsyncArchive:
    """An archive of a server. Each method is as that of Archive."""

    def __init__(self, client: AsyncClient, name: str, uuid: Optional[str] = None) -> None:
        self.client = client
        self.name = name
        # The only contents that are read; None: any.
        self.uuid = uuid

    def __repr__(self) -> str:
        return f"{self.client!r}[{self.name!r}]"

    async def info(self) -> ArchiveInfo:
        """As Archive.info()."""
        return await self._run(self._core.info(self._target))

    async def pinned(self) -> "AsyncArchive":
        """As Archive.pinned()."""
        return AsyncArchive(self.client, self.name, (await self.info()).uuid)

    async def read(self, key: AnyKey, *, at: Optional[Time] = None,
                   record_types: Optional[Sequence[str]] = None,
                   occurrence: Optional[int] = None,
                   range: Optional[Tuple[int, int]] = None) -> bytes:
        """As Archive.read()."""
        made = make_key(key, at, record_types, occurrence, range)
        return (await self._run(self._core.read(self._target, made))).data

    async def document(self, key: AnyKey, *, at: Optional[Time] = None,
                       record_types: Optional[Sequence[str]] = None,
                       occurrence: Optional[int] = None) -> Document:
        """As Archive.document()."""
        made = make_key(key, at, record_types, occurrence, (0, 0))
        document = (await self._run(self._core.read(self._target, made))).document
        assert document is not None
        return document

    async def read_range(self, offset: int, size: int) -> bytes:
        """As Archive.read_range()."""
        return (await self._run(self._core.read(self._target, Span(offset, size)))).data

    async def payload(self, key: AnyKey, *, at: Optional[Time] = None,
                      record_types: Optional[Sequence[str]] = None,
                      occurrence: Optional[int] = None,
                      size_max: int = _payload.SIZE_MAX) -> Payload:
        """As Archive.payload()."""
        made = make_key(key, at, record_types, occurrence, None)
        return await self._run(_payload.read_payload(self._core, self._target, made, size_max))

    def get_many(self, keys: Keys, *, ordered: bool = True) -> AsyncIterator[Answer]:
        """As Archive.get_many(); the keys may come asynchronously."""
        return self._iterate(_batch.get_many(self._core, self._target, ordered),
                             _batch.several(keys))

    def documents(self, prefix: Union[bytes, str, None] = None, *, first_ordinal: int = 0,
                  page_size: int = _listing.PAGE_SIZE, fields: Sequence[str] = (),
                  where: Optional[str] = None) -> AsyncIterator[Document]:
        """As Archive.documents()."""
        return self._iterate(self._core.documents(
            self._target, None if prefix is None else to_id(prefix), first_ordinal, page_size,
            fields, where))

    def captures(self, url: Union[bytes, str, None] = None, *,
                 key: Union[bytes, str, None] = None, match: str = "exact",
                 since: Optional[Time] = None, until: Optional[Time] = None,
                 closest: Optional[Time] = None, newest_first: bool = False,
                 where: Optional[str] = None) -> AsyncIterator[Capture]:
        """As Archive.captures()."""
        return self._iterate(self._core.captures(self._target, _listing.make_capture_request(
            url, key, match, since, until, closest, newest_first, where)))

    def __aiter__(self) -> AsyncIterator[Document]:
        return self.documents()

    def entries(self, prefix: Union[bytes, str] = b"",
                delimiter: Union[bytes, str] = b"/"
                ) -> AsyncIterator[Union[Document, Prefix]]:
        """As Archive.entries()."""
        return self._iterate(self._core.entries(self._target, to_id(prefix), to_id(delimiter)))

    def scan(self, *, first_ordinal: int = 0) -> "AsyncScan":
        """As Archive.scan()."""
        withdrawn = WithdrawnCount()
        return AsyncScan(self._iterate(self._core.scan(self._target, first_ordinal, withdrawn)),
                         withdrawn)

    def stream_range(self, offset: int = 0, size: Optional[int] = None) -> AsyncIterator[bytes]:
        """As Archive.stream_range()."""
        return self._iterate(self._core.stream_span(self._target, offset, size))

    # --- Helpers.

    @property
    def _core(self) -> _core.Core:
        return self.client._core  # pylint: disable=protected-access

    @property
    def _target(self) -> ArchiveName:
        return ArchiveName(self.name, self.uuid)

    async def _run(self, steps: Steps[T]) -> T:
        return await self.client._run(steps)  # pylint: disable=protected-access

    def _iterate(self, steps: Steps[None], keys: Keys = ()) -> AsyncIterator[Any]:
        return self.client._iterate(steps, keys)  # pylint: disable=protected-access


class AsyncScan(AsyncIterator[Tuple[Document, bytes]]):
    """As client.Scan."""

    def __init__(self, found: AsyncIterator[Any], withdrawn: WithdrawnCount) -> None:
        self._found = found
        self._withdrawn = withdrawn

    @property
    def withdrawn_count(self) -> int:
        """Withdrawn documents that were left out; complete at the end."""
        return self._withdrawn.count

    async def __anext__(self) -> Tuple[Document, bytes]:
        found: Tuple[Document, bytes] = await self._found.__anext__()
        return found

    async def aclose(self) -> None:
        """Ends the call before its end."""
        await self._found.aclose()  # type: ignore[attr-defined]
