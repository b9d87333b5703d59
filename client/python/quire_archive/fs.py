# SPDX-License-Identifier: Apache-2.0
"""An fsspec file system: quire://ARCHIVE/ID, or quire://HOST:PORT/ARCHIVE/ID.

The server is that of the URL, or of storage option `server`, or of QUIRE_SERVER. Other
storage options are those of connect(). Files are the documents as they are stored; of
a crawl the records. Nothing can be written.

Paths. A document's path is the archive, "/", and its id, of which the slashes divide
directories. Ids may be any bytes, and paths not, so a path escapes:
  - bytes that are not UTF-8, control characters, "%", "*", "?" and "[", the names "."
    and "..", and the second of two colons, as "%" and two hexadecimal digits;
  - an empty name, as in "a//b", "a/" or the empty id, as "%empty";
  - a document whose id is also a directory, such as "a" next to "a/b": it is "a/%self"
    in listings. "a" is then a directory, but can be opened and read as the document.
make_path() escapes an id. Paths that are given need not be escaped where nothing else
has the same path: "%" before anything but two digits stands for itself. A slash at the
end of a path is ignored.

Local names of get() are ids, without escapes; only names that no file can have stay
escaped, and those that look like one of these. A file gets its name once it is complete;
only a file that is copied alone is synced to the disk.

Several documents of one id are one file, the one that Archive.read() chooses: the
newest response, else resource, else document that is not from a WARC. An id without any
of these has no file.
"""
from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import datetime
import operator
import os
import re
import weakref
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from fsspec.asyn import AsyncFileSystem, sync
from fsspec.spec import AbstractBufferedFile
from fsspec.utils import common_prefix

from . import _batch
from ._options import is_forked
from ._program import replaced_file
from .aio import AsyncArchive, AsyncClient, connect_async
from .errors import NotFoundError, QuireError, RangePastEnd
from .records import AnyKey, Document, Key, Prefix, to_id

_PROTOCOL = "quire://"
_SERVER = re.compile(r"((?:\[[0-9A-Fa-f:.]+\]|[^/:\[\]]+):\d+)(?:/|\Z)")
_EMPTY = "%empty"
_SELF = "%self"
_ESCAPED = re.compile("[\x00-\x1f\x7f%*?\\[\ud800-\udfff]|(?<=:):")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_CLOSE_SECONDS_MAX = 5
_DOTS = {".": "%2E", "..": "%2E%2E"}
_MAGIC = re.compile(r"[*?\[]")
# Names that no file can have or that stand for others, and what looks like their escapes.
_KEPT = re.compile(rb"\.\.?|(?:%(?:25)*2E){1,2}|%(?:25)*(?:self|empty)|.*(?:\0|%(?:25)*00).*",
                   re.DOTALL)
# Files that the error of get() names; more are only counted.
_NAMED_MAX = 20


def _escape(name: bytes) -> str:
    text = _ESCAPED.sub(_escape_character, name.decode("utf-8", "surrogateescape"))
    return _DOTS.get(text, text) or _EMPTY


def _escape_character(match: "re.Match[str]") -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "surrogateescape"))


def _unescape(name: str) -> bytes:
    if name == _EMPTY:
        return b""
    return _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), to_id(name))


def make_path(archive: str, document_id: Union[bytes, str]) -> str:
    """The path of a document, without protocol and server."""
    return "/".join([archive, *map(_escape, to_id(document_id).split(b"/"))])


def _local_name(name: str) -> str:
    """Of the file for one part of a path: different names, different files."""
    if name in (_EMPTY, _SELF):
        return name
    raw = _unescape(name)
    return _escape(raw) if _KEPT.fullmatch(raw) else os.fsdecode(raw)


class _Path(NamedTuple):
    archive: str
    # None: the root of the archive.
    id: Optional[bytes]
    # The document "a" by its path "a/%self".
    is_self: bool


def _parse(path: str) -> _Path:
    archive, _, rest = path.partition("/")
    if not rest:
        return _Path(archive, None, False)
    if "%" not in rest:
        return _Path(archive, to_id(rest), False)
    names = rest.split("/")
    is_self = len(names) > 1 and names[-1] == _SELF
    if is_self:
        names.pop()
    return _Path(archive, b"/".join(map(_unescape, names)), is_self)


def default_of(documents: Sequence[Document]) -> Optional[Document]:
    """The document that an id alone names; None if there is none."""
    for kind in ("response", "resource", None):
        found = [d for d in documents if d.record_type == kind]
        if found:
            return max(found, key=lambda d: (
                d.capture_time_ms is not None, d.capture_time_ms or 0, d.ordinal))
    return None


def _info(path: str, document: Document) -> Dict[str, Any]:
    info = {"name": path, "size": document.size, "type": "file", "mode": 0o444,
            "ordinal": document.ordinal, "media_type": document.media_type}
    if document.capture_time_ms is not None:
        info["mtime"] = document.capture_time_ms / 1000
    return info


def _directory(path: str) -> Dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory", "mode": 0o555}


def _bound(name: str, bound: Any) -> Optional[int]:
    """The start or end of a range; raises TypeError, which names it."""
    try:
        return None if bound is None else operator.index(bound)
    except TypeError:
        raise TypeError(f"{name} must be int or None, got {bound!r}") from None


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(f"{_PROTOCOL}{path}")


def _write_file(path: str, data: bytes, sync: bool) -> None:
    """Writes a local file. A regular one appears only when it is complete, and a link to one
    stays; any other, such as a device, is written directly."""
    path = os.path.realpath(path)
    is_aside = os.path.isfile(path) or not os.path.exists(path)
    with replaced_file(path, sync) if is_aside else open(path, "wb") as file:
        file.write(data)


# File systems whose clients are to be closed before the process ends, and ends of clients
# that have begun: gRPC's threads must not outlive the event loop.
_filesystems: "weakref.WeakValueDictionary[int, QuireFileSystem]" = weakref.WeakValueDictionary()
_closing: Set["concurrent.futures.Future[None]"] = set()


def _close(client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
    """Begins to close it. Never waits: the garbage collector may run in the loop's thread."""
    # pylint: disable=protected-access
    if client._channel is not None and loop.is_running() and not is_forked():
        closing = asyncio.run_coroutine_threadsafe(client.close(), loop)
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)


@atexit.register
def _close_all() -> None:
    for filesystem in list(_filesystems.values()):
        _close(filesystem._client, filesystem.loop)  # pylint: disable=protected-access
    concurrent.futures.wait(list(_closing), _CLOSE_SECONDS_MAX)


class QuireFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """See the module."""

    protocol = "quire"
    root_marker = ""
    async_impl = True

    def __init__(self, server: Optional[str] = None, *, asynchronous: bool = False,
                 loop: Any = None, **options: Any) -> None:
        own = {name: options.pop(name) for name in
               ("batch_size", "use_listings_cache", "listings_expiry_time", "max_paths",
                "skip_instance_cache") if name in options}
        super().__init__(asynchronous=asynchronous, loop=loop, **own)
        self._client: AsyncClient = connect_async(server, **options)
        if not asynchronous:
            weakref.finalize(self, _close, self._client, self.loop).atexit = False
            _filesystems[id(self)] = self

    # --- Names.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = str(path)
        if path.startswith(_PROTOCOL):
            path = path[len(_PROTOCOL):]
        path = path.lstrip("/")
        match = _SERVER.match(path) if ":" in path else None
        if match is not None:
            path = path[match.end():]
        return path.rstrip("/")

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a path; the server is in the storage options."""
        return f"{_PROTOCOL}{self._strip_protocol(name)}"

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> Dict[str, Any]:
        match = _SERVER.match(path[len(_PROTOCOL):]) if path.startswith(_PROTOCOL) else None
        return {} if match is None else {"server": match.group(1)}

    # --- Listings.

    def invalidate_cache(self, path: Any = None) -> None:
        """Forgets listings; an archive may have grown since."""
        self.dircache.clear()
        super().invalidate_cache(path)

    async def _ls(self, path: str, detail: bool = True, refresh: bool = False,
                  **_: Any) -> List[Any]:
        path = self._strip_protocol(path)
        entries: Optional[List[Dict[str, Any]]] = None
        if path in self.dircache and not refresh:
            entries = self.dircache[path]
        if entries is None:
            entries = await self._list(path)
            self.dircache[path] = entries
        return entries if detail else [entry["name"] for entry in entries]

    async def _list(self, path: str) -> List[Dict[str, Any]]:
        if not path:
            return [_directory(info.name) for info in await self._client.archives()]
        parsed = _parse(path)
        archive = self._client[parsed.archive]
        try:
            entries = await self._list_directory(archive, path, parsed)
            if entries or parsed.id is None:
                return entries
            return [_info(path, await archive.document(parsed.id))]
        except NotFoundError:
            raise _missing(path) from None

    async def _list_directory(self, archive: AsyncArchive, path: str,
                              parsed: _Path) -> List[Dict[str, Any]]:
        if parsed.is_self:
            return []
        prefix = b"" if parsed.id is None else parsed.id + b"/"
        files: Dict[bytes, List[Document]] = {}
        directories = []
        async for entry in archive.entries(prefix):
            if isinstance(entry, Prefix):
                directories.append(entry.id[:-1])
            else:
                files.setdefault(entry.id, []).append(entry)
        found = [_directory(f"{path}/{_escape(name[len(prefix):])}") for name in directories]
        for name in directories:
            # Listed in that directory, as %self.
            files.pop(name, None)
        for name, documents in files.items():
            document = default_of(documents)
            if document is not None:
                found.append(_info(f"{path}/{_escape(name[len(prefix):])}", document))
        if found and parsed.id is not None:
            try:
                found.append(_info(f"{path}/{_SELF}", await archive.document(parsed.id)))
            except NotFoundError:
                pass
        return sorted(found, key=lambda entry: str(entry["name"]))

    async def _info(self, path: str, **_: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        if not path:
            return _directory(path)
        parsed = _parse(path)
        archive = self._client[parsed.archive]
        try:
            if parsed.id is None:
                await archive.info()
                return _directory(path)
            if not parsed.is_self and await self._is_directory(archive, parsed.id):
                return _directory(path)
            return _info(path, await archive.document(parsed.id))
        except NotFoundError:
            raise _missing(path) from None

    async def _du(self, path: str, total: bool = True, maxdepth: Optional[int] = None,
                  **options: Any) -> Any:
        # fsspec's own asks for each file.
        found = await self._find(path, maxdepth=maxdepth, **{**options, "detail": True})
        sizes = {name: info["size"] for name, info in found.items()}
        return sum(sizes.values()) if total else sizes

    async def _expand(self, path: Any, recursive: bool,
                      maxdepth: Optional[int]) -> Dict[str, bool]:
        """What paths and patterns name, sorted; True for a directory. Asks once a directory."""
        found: Dict[str, bool] = {}

        def add(entries: Dict[str, Dict[str, Any]]) -> None:
            found.update((name, info["type"] == "directory") for name, info in entries.items())

        for one in map(self._strip_protocol, path if isinstance(path, list) else [path]):
            depth = maxdepth
            if _MAGIC.search(one):
                tops = await self._glob(one, maxdepth=maxdepth, detail=True)
                # The pattern was the first level.
                depth = None if maxdepth is None else maxdepth - 1
            else:
                tops = {one: await self._info(one)}
            add(tops)
            for name, info in tops.items():
                if recursive and info["type"] == "directory" and depth != 0:
                    add(await self._find(name, maxdepth=depth, withdirs=True, detail=True))
        if not found:
            raise FileNotFoundError(path)
        return dict(sorted(found.items()))

    async def _is_directory(self, archive: AsyncArchive, name: bytes) -> bool:
        async for _ in archive.documents(name + b"/", page_size=1):
            return True
        return False

    def modified(self, path: str) -> datetime.datetime:
        """The capture time of a document, in UTC."""
        info = self.info(path)
        if "mtime" not in info:
            raise NotImplementedError(f"{path} has no capture time")
        return datetime.datetime.fromtimestamp(info["mtime"], datetime.timezone.utc)

    created = modified

    # --- Contents.

    async def _cat_file(self, path: str, start: Optional[int] = None,
                        end: Optional[int] = None, **_: Any) -> bytes:
        start, end = _bound("start", start), _bound("end", end)
        (data,) = await self._cat_ranges([path], [start], [end], on_error="raise")
        assert isinstance(data, bytes)
        return data

    async def _cat(self, path: Any, recursive: bool = False, on_error: str = "raise",
                   **_: Any) -> Any:
        if recursive:
            expanded = await self._expand(path, recursive, None)
            paths = [one for one, is_directory in expanded.items() if not is_directory]
        else:
            paths = await self._expand_path(path)
        found = await self._cat_ranges(paths, None, None, on_error=(
            "raise" if on_error == "raise" else "return"))
        if isinstance(path, list) or len(paths) > 1 or paths[0] != self._strip_protocol(path):
            return {one: data for one, data in zip(paths, found)
                    if on_error != "omit" or isinstance(data, bytes)}
        return found[0]

    async def _cat_ranges(self, paths: List[str], starts: Any, ends: Any,
                          max_gap: Optional[int] = None, batch_size: Optional[int] = None,
                          on_error: str = "return", **_: Any) -> List[Any]:
        """One batch of each archive. `max_gap` changes nothing: the server merges reads."""
        if not isinstance(paths, list):
            raise TypeError("paths must be a list")
        starts = starts if isinstance(starts, Iterable) else [starts] * len(paths)
        ends = ends if isinstance(ends, Iterable) else [ends] * len(paths)
        starts, ends = list(starts), list(ends)
        if len(starts) != len(paths) or len(ends) != len(paths):
            raise ValueError("paths, starts and ends must be of one length")
        starts = [_bound(f"starts[{index}]", start) for index, start in enumerate(starts)]
        ends = [_bound(f"ends[{index}]", end) for index, end in enumerate(ends)]
        found: List[Any] = [None] * len(paths)
        # Archive -> (index, key) of ranges that need no size.
        batches: Dict[str, List[Tuple[int, AnyKey]]] = {}
        sized: List[int] = []
        for index, (path, start, end) in enumerate(zip(paths, starts, ends)):
            parsed = _parse(self._strip_protocol(path))
            if parsed.id is None:
                found[index] = _missing(path) if not parsed.archive else IsADirectoryError(path)
            elif start is None and end is None:
                batches.setdefault(parsed.archive, []).append((index, parsed.id))
            elif (start or 0) < 0 or end is None or end < 0:
                sized.append(index)
            else:
                begin = start or 0
                batches.setdefault(parsed.archive, []).append(
                    (index, Key(parsed.id, range=(begin, max(0, end - begin)))))
        for name, items in batches.items():
            await self._read_batch(name, items, found, sized)
        if sized:
            await asyncio.gather(*(self._read_clamped(paths[index], starts[index], ends[index],
                                                      index, found) for index in sized))
        for index, data in enumerate(found):
            if isinstance(data, NotFoundError):
                found[index] = data = _missing(self._strip_protocol(paths[index]))
            if on_error != "return" and isinstance(data, Exception):
                raise data
        return found

    async def _read_batch(self, archive: str, items: List[Tuple[int, AnyKey]],
                          found: List[Any], sized: List[int]) -> None:
        indexes = [index for index, _ in items]
        try:
            # pylint: disable=protected-access
            answers = await self._client._collect(_batch.get_many(
                self._client._core, self._client[archive]._target, ordered=True),
                [key for _, key in items])
        except QuireError as error:
            for index in indexes:
                found[index] = error
            return
        for index, answer in zip(indexes, answers):
            if answer.error is None:
                found[index] = answer.data
            elif isinstance(answer.error, RangePastEnd):
                sized.append(index)
            else:
                found[index] = answer.error

    async def _read_clamped(self, path: str, start: Optional[int], end: Optional[int],
                            index: int, found: List[Any]) -> None:
        """As a slice: from the end if negative, and cut off at it."""
        parsed = _parse(self._strip_protocol(path))
        assert parsed.id is not None
        try:
            # One state: the size and the bytes belong together.
            archive = await self._client[parsed.archive].pinned()
            document = await archive.document(parsed.id)
            begin, stop, _ = slice(start, end).indices(document.size)
            # By its number: a range would have zeros once the document is withdrawn.
            found[index] = await archive.read(
                document.ordinal, range=(begin, max(0, stop - begin)))
        except QuireError as error:
            found[index] = error

    async def _get_file(self, rpath: str, lpath: str, **_: Any) -> None:
        if await self._isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        data = await self._cat_file(rpath)
        _write_file(lpath, data, sync=True)

    async def _get(self, rpath: Any, lpath: Any, recursive: bool = False, callback: Any = None,
                   maxdepth: Optional[int] = None, **_: Any) -> None:
        """Reads files in batches. What cannot be read or written is left out, and named in an
        OSError at the end."""
        if isinstance(rpath, list) and isinstance(lpath, list):
            if len(rpath) != len(lpath):
                raise ValueError(f"{len(rpath)} paths cannot become {len(lpath)} local ones")
            names = list(zip(map(self._strip_protocol, rpath), lpath))
        else:
            names = await self._place(rpath, str(lpath), recursive, maxdepth)
        if callback is not None:
            callback.set_size(len(names))
        failures: List[Tuple[str, Exception]] = []
        written: Set[str] = set()
        batches: Dict[str, List[Tuple[str, str, bytes]]] = {}
        for path, local in names:
            parsed = _parse(path)
            if parsed.id is None:
                failures.append((path, IsADirectoryError(path)))
            elif local in written:
                failures.append((path, FileExistsError(f"{local} is the name of another file")))
            else:
                written.add(local)
                batches.setdefault(parsed.archive, []).append((path, local, parsed.id))
        for archive, items in batches.items():
            await self._write_files(archive, items, failures, callback)
        if failures and len(names) == 1:
            raise failures[0][1]
        if failures:
            named = "; ".join(f"{path}: {error}" for path, error in failures[:_NAMED_MAX])
            more = len(failures) - _NAMED_MAX
            raise OSError(f"{len(failures)} of {len(names)} files were not written: {named}"
                          + (f"; and {more} more" if more > 0 else ""))

    async def _write_files(self, archive: str, items: List[Tuple[str, str, bytes]],
                           failures: List[Tuple[str, Exception]], callback: Any) -> None:
        answers = self._client[archive].get_many([name for _, _, name in items])
        for path, local, _ in items:
            try:
                answer = await answers.__anext__()
            except NotFoundError:
                raise _missing(path) from None
            error: Optional[Exception] = answer.error
            if error is None:
                try:
                    os.makedirs(os.path.dirname(local) or ".", exist_ok=True)
                    _write_file(local, answer.data, sync=len(items) == 1)
                except OSError as found:
                    error = found
            elif isinstance(error, NotFoundError):
                error = _missing(path)
            if error is not None:
                failures.append((path, error))
            if callback is not None:
                callback.relative_update(1)

    async def _place(self, rpath: Any, lpath: str, recursive: bool,
                     maxdepth: Optional[int]) -> List[Tuple[str, str]]:
        """The files that get() copies, and their local paths, by the rules of fsspec."""
        expanded = await self._expand(rpath, recursive, maxdepth)
        if isinstance(rpath, str) and (not recursive or maxdepth is not None):
            expanded = {path: False for path, is_directory in expanded.items() if not is_directory}
        names = {path: "/".join(map(_local_name, path.split("/"))) for path in expanded}
        if not names:
            return []
        into = lpath.rstrip("/") or "/"
        if isinstance(rpath, str):
            top = common_prefix(names.values())
            is_inside = len(names) == 1 if _MAGIC.search(self._strip_protocol(rpath)) else (
                not rpath.endswith("/") and (lpath.endswith("/") or os.path.isdir(lpath)))
            if is_inside:
                top = top.rsplit("/", 1)[0]
            names = {path: into + name[len(top):] if top else f"{into}/{name}"
                     for path, name in names.items()}
        else:
            names = {path: f"{into}/{name.rpartition('/')[2]}" for path, name in names.items()}
        return [(path, names[path]) for path, is_directory in expanded.items()
                if not is_directory]

    async def _refuse(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("archives are read-only")

    _pipe_file = _put_file = _cp_file = _rm_file = _mkdir = _makedirs = _refuse

    def _open(self, path: str, mode: str = "rb", block_size: Any = None,
              **options: Any) -> "QuireFile":
        if mode != "rb":
            raise NotImplementedError(f"archives are read-only, got mode {mode!r}")
        path = self._strip_protocol(path)
        archive, document = sync(self.loop, self._locate, path)
        return QuireFile(self, path, archive, document, block_size, options)

    async def _locate(self, path: str) -> Tuple[AsyncArchive, Document]:
        parsed = _parse(path)
        if parsed.id is None:
            raise IsADirectoryError(path)
        try:
            archive = await self._client[parsed.archive].pinned()
            return archive, await archive.document(parsed.id)
        except NotFoundError:
            raise _missing(path) from None


class QuireFile(AbstractBufferedFile):  # type: ignore[misc]
    """A document; of one state of its archive."""

    def __init__(self, fs: QuireFileSystem, path: str, archive: AsyncArchive,
                 document: Document, block_size: Any, options: Dict[str, Any]) -> None:
        self._archive = archive
        self._document = document
        self.details = _info(path, document)
        super().__init__(fs, path, mode="rb", block_size=block_size or "default",
                         size=document.size, **{name: value for name, value in options.items()
                                                if name in ("cache_type", "cache_options")})

    def _fetch_range(self, start: int, end: int) -> bytes:
        end = min(end, self.size)
        if start >= end:
            return b""
        # By its number, as QuireFileSystem does.
        data: bytes = sync(self.fs.loop, self._archive.read, self._document.ordinal,
                           range=(start, end - start))
        return data
