# SPDX-License-Identifier: Apache-2.0
"""The blocking client."""
from __future__ import annotations

import io
import itertools
import queue
import threading
import time
import weakref
from typing import (Any, Collection, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple,
                    TypeVar, Union)

import grpc

from . import _batch, _core, _files, _listing, _messages, _options, _payload, _steps, _stored
from ._steps import ArchiveName, Steps
from .errors import (CallCancelled, DeadlinePassed, DocumentNotFound, DocumentWithdrawn,
                     QuireError, from_rpc)
from .records import (Answer, AnyKey, ArchiveInfo, Capture, Document, Key, Payload, Prefix, Span,
                      Time, WithdrawnCount, to_id)

T = TypeVar("T")


def connect(server: Optional[str] = None, **options: Any) -> "Client":
    """Returns a client. Does not contact the server: the first call does.

    server: HOST:PORT, unix:PATH or another gRPC target; by default that of the
        environment variable QUIRE_SERVER, or 127.0.0.1:7420.

    Options:
      deadline=30.0       seconds of a call with one answer, repetitions included
      idle_max=30.0       streams: seconds until the next message; both may be infinite
      attempts_max=4      attempts of a call that finds no server, or one that is unavailable
                          without naming a delay
      retry_backoff=0.1   seconds before the second; doubles, with jitter
    A server that names a delay, as it opens the archive, is busy or limits this client, is
    asked again after it, however often, until `deadline` or `idle_max`; if the delay is longer
    than the rest of these, the call fails at once.
      encoding="auto"     how bytes travel: "identity", plain; "stored", as blocks of
                          the archive where this client has their decoder (package
                          zstandard); "auto", stored for scans, otherwise plain
      dictionary_size_max=256 MiB   of dictionaries in memory, for stored blocks
      tls, ca_file, cert_file, key_file, server_name   as --tls, --ca, --cert, --key
                          and --tls-name of the program quire
      token, token_file   a token as text, or in a file: "ID.SECRET"
      allow_readable_secrets=False  take a key or token file that all users can read
    QUIRE_CA, QUIRE_CERT, QUIRE_KEY and QUIRE_TOKEN_FILE are the defaults of theirs.
    """
    return Client(_options.make_options(server, options))


class Client:
    """A connection to a server. Thread-safe; a context manager.

    Can be pickled, with its options: the copy connects anew. In a child that was
    forked after a call of any client, all calls raise ForkedError.
    """

    def __init__(self, options: _options.Options) -> None:
        self._options = options
        self._core = _core.Core(options)
        self._lock = threading.Lock()
        self._calls: Dict[str, Any] = {}
        self._channel: Any = None
        # Calls that began before the last of these have ended.
        self._close_count = 0
        # Set by the next close().
        self._closes = threading.Event()
        self._metadata: Any = None
        self._watchdog = _Watchdog(options.idle_max)

    def __reduce__(self) -> Any:
        return Client, (self._options,)

    def __repr__(self) -> str:
        return f"Client({self._options.server!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all calls, with CallCancelled. The next call connects again."""
        with self._lock:
            channel, self._channel = self._channel, None
            self._calls = {}
            self._close_count += 1
            self._closes.set()
            self._closes = threading.Event()
        if channel is not None:
            channel.close()

    def archives(self) -> List[ArchiveInfo]:
        """All archives of the server, by name."""
        return self._run(self._core.archives())

    def archive(self, name: str, uuid: Optional[str] = None) -> "Archive":
        """An archive; does not contact the server.

        With a uuid, reads raise ArchiveStateUnknown once the archive has other
        contents than these.
        """
        return Archive(self, name, uuid)

    def __getitem__(self, name: str) -> "Archive":
        return self.archive(name)

    # --- Carries out steps.

    def _call(self, method: str) -> Any:
        call = self._calls.get(method)
        return call if call is not None else self._connect(method)

    def _connect(self, method: str) -> Any:
        with self._lock:
            if self._channel is None:
                self._before_connect()
                self._metadata = _options.call_metadata(self._options)
                self._channel = _options.open_channel(self._options, grpc)
                self._calls = {
                    name: getattr(self._channel, found.kind)(
                        found.path, request_serializer=_messages.serializer(found),
                        response_deserializer=_messages.deserializer(found))
                    for name, found in _messages.METHODS.items()}
            return self._calls[method]

    def _before_connect(self) -> None:
        """Called with the lock before each connection; for clients of private servers."""

    def _note_failure(self, error: QuireError) -> None:
        """Called for each call that failed, before it is repeated; for these clients, too."""

    def _run(self, steps: Steps[T]) -> T:
        """The result of steps that emit nothing."""
        with _Run(self, steps) as run:
            run.next()
            result: T = run.result
            return result

    def _iterate(self, steps: Steps[None], keys: Iterable[AnyKey] = ()) -> Iterator[Any]:
        """What the steps emit."""
        with _Run(self, steps, keys) as run:
            while (values := run.next()) is not None:
                yield from values


class _Stream:
    """A stream of messages. `requests`: None if it has one request."""

    def __init__(self, call: Any, requests: Optional["queue.SimpleQueue[Any]"]) -> None:
        self.call = call
        self.requests = requests
        # Time at which waiting for the current message began; None: not waiting.
        self.waits_since: Optional[float] = None
        self.has_expired = False

    def cancel(self) -> None:
        """In whatever state."""
        self.call.cancel()
        if self.requests is not None:
            # The thread that sends waits for more.
            self.requests.put(None)


class _Watchdog:
    """Cancels streams whose server is silent: gRPC has no deadline for a message.

    One thread for all streams of a client, which ends if there are none.
    """

    def __init__(self, idle_max: float) -> None:
        self._idle_max = idle_max
        self._changed = threading.Condition()
        self._streams: "weakref.WeakSet[_Stream]" = weakref.WeakSet()
        self._thread: Optional[threading.Thread] = None

    def add(self, stream: _Stream) -> None:
        """Watches a stream until it is removed."""
        with self._changed:
            self._streams.add(stream)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True,
                                                name="quire-watchdog")
                self._thread.start()

    def remove(self, stream: _Stream) -> None:
        """Forgets it."""
        with self._changed:
            self._streams.discard(stream)
            if not self._streams:
                self._changed.notify_all()

    def _watch(self) -> None:
        interval = min(self._idle_max / 4, 1.0)
        while True:
            with self._changed:
                if not self._streams:
                    self._changed.wait(10.0)
                if not self._streams:
                    self._thread = None
                    return
                now = time.monotonic()
                for stream in list(self._streams):
                    since = stream.waits_since
                    if since is not None and now - since > self._idle_max:
                        stream.has_expired = True
                        stream.cancel()
            time.sleep(interval)


class _Run:
    """Carries out the steps of one call of a client. A context manager."""

    # Return value of the steps.
    result: Any = None

    def __init__(self, client: Client, steps: Steps[Any], keys: Iterable[AnyKey] = ()) -> None:
        self._client = client
        # pylint: disable=protected-access
        self._closes = client._closes
        self._close_count = client._close_count
        self._steps = steps
        self._keys = iter(keys)
        self._streams: List[_Stream] = []
        self._started: List[Any] = []

    def __enter__(self) -> "_Run":
        return self

    def next(self) -> Optional[Sequence[Any]]:
        """What the steps emit next; None at their end."""
        steps = self._steps
        try:
            step = next(steps)
            while not isinstance(step, _steps.Emit):
                try:
                    reply = self._perform(step)
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
            # gRPC would hang.
            return
        while self._streams:
            self._close(self._streams[-1])
        for started in self._started:
            started.cancel()

    def _perform(self, step: _steps.Step) -> Any:
        """The result of a step. Raises QuireError."""
        if isinstance(step, _steps.Close):
            return self._close(step.stream)
        self._check_not_closed()
        if isinstance(step, _steps.Pull):
            keys = list(itertools.islice(self._keys, step.count))
            return keys, len(keys) < step.count
        try:
            return self._perform_open(step)
        except grpc.RpcError as error:
            self._check_not_closed()
            # pylint: disable=protected-access
            failure = from_rpc(error, self._client._options.server)
            self._client._note_failure(failure)
            raise failure from None
        except ValueError:
            # gRPC's for a call of a channel that is closed.
            self._check_not_closed()
            raise

    def _check_not_closed(self) -> None:
        # pylint: disable=protected-access
        if self._client._close_count != self._close_count:
            raise CallCancelled("the client was closed during the call") from None

    def _perform_open(self, step: _steps.Step) -> Any:
        """The same. Raises grpc.RpcError, and ValueError if the client is closed meanwhile."""
        # pylint: disable=protected-access
        _options.check_not_forked()
        client = self._client
        if isinstance(step, _steps.Receive):
            return self._receive(step.stream)
        if isinstance(step, _steps.Call):
            return client._call(step.method)(
                step.request, timeout=step.timeout,
                metadata=_options.with_route(client._metadata, step.archive, step.attempt))
        if isinstance(step, _steps.Send):
            step.stream.requests.put(step.message)
            return None
        if isinstance(step, _steps.Open):
            return self._open(step)
        if isinstance(step, _steps.Start):
            started = client._call(step.method).future(
                step.request, timeout=step.timeout,
                metadata=_options.with_route(client._metadata, step.archive))
            self._started = [started]
            return started
        if isinstance(step, _steps.Compute):
            return _stored.threads().submit(step.function)
        if isinstance(step, _steps.Finish):
            return step.started.result()
        assert isinstance(step, _steps.Sleep)
        # Until the client is closed.
        self._closes.wait(step.seconds)
        return None

    def _open(self, step: _steps.Open) -> _Stream:
        # pylint: disable=protected-access
        client = self._client
        call = client._call(step.method)
        metadata = _options.with_route(client._metadata, step.archive, step.attempt)
        if step.request is not None:
            stream = _Stream(call(step.request, metadata=metadata), None)
        else:
            requests: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
            stream = _Stream(call(iter(requests.get, None), metadata=metadata), requests)
        self._streams.append(stream)
        client._watchdog.add(stream)
        return stream

    def _receive(self, stream: _Stream) -> Any:
        stream.waits_since = time.monotonic()
        try:
            return next(stream.call)
        except StopIteration:
            return None
        except grpc.RpcError:
            # pylint: disable=protected-access
            options = self._client._options
            if stream.has_expired:
                raise DeadlinePassed(f"{options.server} sent nothing for {options.idle_max:g} "
                                     "seconds") from None
            raise
        finally:
            stream.waits_since = None

    def _close(self, stream: _Stream) -> None:
        # pylint: disable=protected-access
        stream.cancel()
        self._client._watchdog.remove(stream)
        self._streams.remove(stream)


class Archive:
    """An archive of a server. Thread-safe; can be pickled.

    A key is an id (text in UTF-8, or bytes), an ordinal (int), a Key, or a Span.
    """

    def __init__(self, client: Client, name: str, uuid: Optional[str] = None) -> None:
        self.client = client
        self.name = name
        # The only contents that are read; None: any.
        self.uuid = uuid

    def __repr__(self) -> str:
        return f"{self.client!r}[{self.name!r}]"

    def info(self) -> ArchiveInfo:
        """Its description."""
        return self._run(self._core.info(self._target))

    def pinned(self) -> "Archive":
        """The archive with its present contents: see Client.archive()."""
        return Archive(self.client, self.name, self.info().uuid)

    # --- Single reads.

    def read(self, key: AnyKey, *, at: Optional[Time] = None,
             record_types: Optional[Sequence[str]] = None, occurrence: Optional[int] = None,
             range: Optional[Tuple[int, int]] = None) -> bytes:
        """The bytes of a document, or (offset, size) of them. The options: see Key."""
        made = make_key(key, at, record_types, occurrence, range)
        return self._run(self._core.read(self._target, made)).data

    def document(self, key: AnyKey, *, at: Optional[Time] = None,
                 record_types: Optional[Sequence[str]] = None,
                 occurrence: Optional[int] = None) -> Document:
        """The description of a document."""
        made = make_key(key, at, record_types, occurrence, (0, 0))
        document = self._run(self._core.read(self._target, made)).document
        assert document is not None
        return document

    def read_range(self, offset: int, size: int) -> bytes:
        """Bytes of the archive's documents put end to end."""
        return self._run(self._core.read(self._target, Span(offset, size))).data

    def payload(self, key: AnyKey, *, at: Optional[Time] = None,
                record_types: Optional[Sequence[str]] = None, occurrence: Optional[int] = None,
                size_max: int = _payload.SIZE_MAX) -> Payload:
        """A page of a crawl as a browser would have received it, as `quire get` prints it.

        Without the headers of WARC and HTTP, chunks and content codings (gzip and
        deflate; br and zstd if the packages brotli and zstandard are installed).
        Revisits are followed. If the key is an id, or has nothing else but `at`,
        redirects and answers to HEAD are passed, unless there is no page among the
        newest 1,000 captures; `passed_count` of the result is their number. A document that is not from a WARC is returned
        unchanged. `size_max` bounds what a coded payload decodes to.

        Raises PayloadDamaged, with what could be decoded, for a truncated or
        malformed record.
        """
        made = make_key(key, at, record_types, occurrence, None)
        return self._run(_payload.read_payload(self._core, self._target, made, size_max))

    # --- Many documents.

    def get_many(self, keys: Iterable[AnyKey], *, ordered: bool = True) -> Iterator[Answer]:
        """Reads many documents, in the order that is fastest for the server.

        Yields an Answer for each key, with its own error. With `ordered` they come in
        the order of the keys, and early ones are held back: those that may wait are
        bounded to about 64 MiB by the mean size so far. Takes keys as needed.

        Raises what fails all of it, such as ArchiveNotFound.
        """
        return self.client._iterate(  # pylint: disable=protected-access
            _batch.get_many(self._core, self._target, ordered), _batch.several(keys))

    def documents(self, prefix: Union[bytes, str, None] = None, *, first_ordinal: int = 0,
                  page_size: int = _listing.PAGE_SIZE, fields: Sequence[str] = (),
                  where: Optional[str] = None) -> Iterator[Document]:
        """Descriptions of documents.

        With a prefix, those whose id starts with it, by id; without, all from an
        ordinal on, in the order of the archive, and so not both. `page_size`: of one answer of the
        server, at most 4000; smaller ones come sooner. Each document has the values of
        `fields`, at most 32 names of info().fields, in Document.fields. `where` is a
        filter, such as 'lang = "de" and time >= 2024-01-01' (docs/filters.md): only
        documents that match are listed. Raises FieldNotFound, or MalformedRequest with
        the column of a fault in the filter.
        """
        return self._iterate(self._core.documents(
            self._target, None if prefix is None else to_id(prefix), first_ordinal, page_size,
            fields, where))

    def captures(self, url: Union[bytes, str, None] = None, *,
                 key: Union[bytes, str, None] = None, match: str = "exact",
                 since: Optional[Time] = None, until: Optional[Time] = None,
                 closest: Optional[Time] = None, newest_first: bool = False,
                 where: Optional[str] = None) -> Iterator[Capture]:
        """Captures of a crawl by URL, or without one all, from the index that archives of WARC,
        ARC and WACZ have.

        `url` in any form: http, https, www., letter case, order of arguments and ids of
        sessions make no difference; or `key`, its SURT. `match`: "exact", "prefix" of the
        key, "host", or "domain", with all hosts below. They come by key and time, those of
        one key also with the closest to a time or the newest first. `where` is a filter
        over columns of documents() and key, url, digest and status (docs/filters.md).

        Withdrawn documents are left out. Raises CapturesNotIndexed for an archive without
        an index; a UserWarning has the number of documents that an earlier version wrote,
        whose captures are missing.
        """
        return self._iterate(self._core.captures(self._target, _listing.make_capture_request(
            url, key, match, since, until, closest, newest_first, where)))

    def __iter__(self) -> Iterator[Document]:
        return self.documents()

    def __len__(self) -> int:
        """Number of documents, and the end of the ordinals: withdrawn documents count."""
        return self.info().document_count

    def __bool__(self) -> bool:
        """True; len() would ask the server."""
        return True

    def __getitem__(self, key: AnyKey) -> bytes:
        """As read(). Raises DocumentNotFound, a LookupError."""
        return self.read(key)

    def __contains__(self, key: AnyKey) -> bool:
        """True if the document can be read: it is there, and not withdrawn."""
        if isinstance(key, int) and not 0 <= key < 2**64:
            return False
        try:
            self.document(key)
        except (DocumentNotFound, DocumentWithdrawn):
            return False
        return True

    def entries(self, prefix: Union[bytes, str] = b"",
                delimiter: Union[bytes, str] = b"/") -> Iterator[Union[Document, Prefix]]:
        """One level of the ids, as a directory: documents, and prefixes of others, by id."""
        return self._iterate(self._core.entries(self._target, to_id(prefix), to_id(delimiter)))

    def scan(self, *, first_ordinal: int = 0) -> "Scan":
        """All documents with their bytes, in the order of the archive.

        Reads one state of the archive; raises ArchiveStateUnknown if it is replaced
        meanwhile. Withdrawn documents are left out, and counted in `withdrawn_count`. A
        document is held in memory as a whole.
        """
        withdrawn = WithdrawnCount()
        return Scan(self._iterate(self._core.scan(self._target, first_ordinal, withdrawn)),
                    withdrawn)

    def stream_range(self, offset: int = 0, size: Optional[int] = None) -> Iterator[bytes]:
        """Bytes of the documents put end to end, in pieces of any size; all by default.

        Raises RangePastEnd if the range ends after the archive. An offset at the end of the
        archive, without a size, has no pieces.
        """
        return self._iterate(self._core.stream_span(self._target, offset, size))

    def to_arrow(self, columns: Optional[Sequence[str]] = None, *,
                 filter: Optional[str] = None, text: bool = True,
                 prefix: Union[bytes, str, None] = None, binary: Collection[str] = ("text",),
                 withdrawn: Optional[WithdrawnCount] = None) -> Any:
        """The documents as a pyarrow.RecordBatchReader, which pandas, Polars, DuckDB, Daft
        and others read. Needs the package pyarrow.

        Columns: id, ordinal, size, time (of the capture), type (such as text/html),
        record_type, the fields of the archive (info().fields) and text, the bytes.
        `columns` names those that are wanted; without it `text` decides on the text.
        Without text only the list is read. `filter`: only documents that match it, as
        `where` of documents(). `prefix`: only documents whose id starts with it, by id;
        otherwise they come in the order of the archive.
        `binary`: columns that are bytes instead of strings; a document
        whose string is not UTF-8 ends the reading with ValueError.

        Reads one state of the archive. Withdrawn documents are left out, and counted in
        `withdrawn`, which is complete at the end; without it a UserWarning has their number.
        With a filter or prefix only those are counted that are withdrawn after they were
        listed. The schema's metadata have quire.archive, quire.uuid and
        quire.document_count, which includes withdrawn documents. Batches have the
        documents of a page of the server's list or 4 MiB of text; one of a larger
        document is larger. An error raises where the batch would be: no reader ends early.
        """
        try:
            from . import arrow  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise ImportError(f"to_arrow() needs the module {error.name}; install "
                              "quire-archive[arrow]", name=error.name) from None
        return arrow.to_arrow(self, columns, text, filter,
                              None if prefix is None else to_id(prefix), binary, withdrawn)

    # --- Files.

    def open(self, key: AnyKey, *, at: Optional[Time] = None,
             record_types: Optional[Sequence[str]] = None, occurrence: Optional[int] = None,
             buffer_size: int = _files.BUFFER_SIZE) -> io.BufferedReader:
        """A document as a seekable file.

        Reads one state of the archive; raises ArchiveStateUnknown if it is replaced, and
        DocumentWithdrawn or DocumentNotFound if the document is withdrawn.
        """
        archive = self if self.uuid is not None else self.pinned()
        document = archive.document(key, at=at, record_types=record_types, occurrence=occurrence)
        return io.BufferedReader(
            # By its number: a range would have zeros once the document is withdrawn.
            _files.SpanFile(lambda offset, size: archive.read(
                document.ordinal, range=(offset, size)), document.size, document.name),
            buffer_size)

    def open_space(self, *, buffer_size: int = _files.BUFFER_SIZE) -> io.BufferedReader:
        """All documents put end to end as a seekable file: of a crawl, its WARC."""
        info = self.info()
        archive = Archive(self.client, self.name, info.uuid)
        return io.BufferedReader(_files.SpanFile(archive.read_range, info.size, self.name),
                                 buffer_size)

    # --- Helpers.

    @property
    def _core(self) -> _core.Core:
        return self.client._core  # pylint: disable=protected-access

    @property
    def _target(self) -> ArchiveName:
        return ArchiveName(self.name, self.uuid)

    def _run(self, steps: Steps[T]) -> T:
        return self.client._run(steps)  # pylint: disable=protected-access

    def _iterate(self, steps: Steps[None]) -> Iterator[Any]:
        return self.client._iterate(steps)  # pylint: disable=protected-access


class Scan(Iterator[Tuple[Document, bytes]]):
    """The result of Archive.scan(): documents with their bytes."""

    def __init__(self, found: Iterator[Any], withdrawn: WithdrawnCount) -> None:
        self._found = found
        self._withdrawn = withdrawn

    @property
    def withdrawn_count(self) -> int:
        """Withdrawn documents that were left out; complete at the end."""
        return self._withdrawn.count

    def __iter__(self) -> Iterator[Tuple[Document, bytes]]:
        return self._found

    def __next__(self) -> Tuple[Document, bytes]:
        found: Tuple[Document, bytes] = next(self._found)
        return found

    def close(self) -> None:
        """Ends the call before its end."""
        self._found.close()  # type: ignore[attr-defined]


def make_key(key: AnyKey, at: Optional[Time], record_types: Optional[Sequence[str]],
             occurrence: Optional[int], part: Optional[Tuple[int, int]]) -> AnyKey:
    """`key` with the options of a call."""
    if at is None and record_types is None and occurrence is None and part is None:
        return key
    if isinstance(key, (Key, Span)):
        if isinstance(key, Key) and (at, record_types, occurrence) == (None, None, None) \
                and key.range is None:
            return key._replace(range=part)
        raise TypeError("give options in the Key or in the call, not both")
    return Key(key, at, record_types, occurrence, part)
