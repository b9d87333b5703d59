# SPDX-License-Identifier: Apache-2.0
"""Archives without a server to start: open() starts a private one, and shares it.

server/commands/private_clients.h describes how processes share it; the program quire does the
same for --archive (client/cli/private_server.h), and shares the servers of this module.
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.util
import os
import re
import select
import shutil
import stat
import subprocess
import sysconfig
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Union

import xxhash

from . import _options
from .client import Archive, Client
from .errors import Draining, PrivateServerFailed, QuireError, ServerUnreachable

# Seconds until a change of an archive is seen: a look at its MANIFEST, in a store a request.
_RELOAD_INTERVAL_LOCAL = "1s"
_RELOAD_INTERVAL_STORE = "30s"
_CACHE_SIZE = "10GiB"
# Bytes of the path of a unix socket.
_SOCKET_PATH_MAX = 107
_STORES = ("s3://", "http://", "https://")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
# Variables that reach the server: of the others with QUIRED_, those of the user's own servers
# are meant.
_STORE_VARIABLES = "QUIRED_STORE_"


def open(path: Union[str, "os.PathLike[str]"],  # pylint: disable=redefined-builtin
         *, memory: Union[int, str, None] = None,
         cache: Union[str, "os.PathLike[str]", None] = None,
         cache_size: Union[int, str] = _CACHE_SIZE,
         quired: Union[str, "os.PathLike[str]", None] = None, **options: Any) -> "OpenedArchive":
    """Opens an archive: a directory, or s3://BUCKET/PREFIX or https://HOST/PATH.

        docs = quire_archive.open("docs.quire")
        docs["manual/index.html"]

    Starts `quired serve` on a unix socket that only this user can reach. All processes of the
    user that open the same archive with the same options share it. It ends with the last of
    them, however that ends. Changes of the archive are seen after a second, in a store after
    half a minute.

    memory: limit of the server, such as "4GiB" or a number of bytes; by default what the
        archive needs, and 512 MiB.
    cache, cache_size: directory for copies of an archive in a store, and its limit; by default
        below XDG_CACHE_HOME or ~/.cache, and 10 GiB. A directory is for one server.
    quired: the program; by default that of the environment variable QUIRED, of PATH, of the
        directory of the program quire, or of the package quired.
    The other options are those of connect() that concern calls.

    For stores, the environment has credentials (AWS_*) and options of `quired serve`
    (QUIRED_STORE_ENDPOINT, _REGION, _CA, _CHUNK, _REQUESTS).

    Makes no call: a process may fork afterwards, as for connect(). Raises PrivateServerFailed,
    with the message of quired, if the archive cannot be opened.
    """
    location = _location(os.fspath(path))
    place = Place(location, _name(location),
                  _command(location, memory, cache, cache_size, _find_program(quired)))
    client = PrivateClient(place, options)
    client.join()
    return OpenedArchive(client, place.name)


class OpenedArchive(Archive):
    """The result of open(). A context manager."""

    def __enter__(self) -> "OpenedArchive":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends calls as Client.close(), and leaves the server, which ends with its last client.

        The next call joins it, or starts it, again.
        """
        self.client.close()


class Place(NamedTuple):
    """An archive and the server for it."""

    # Absolute path or URL.
    location: str
    # Its name on the server.
    name: str
    # Command line, without --private.
    command: List[str]


def _location(path: str) -> str:
    return path.rstrip("/") if path.startswith(_STORES) else os.path.realpath(path)


def _name(location: str) -> str:
    name = location.rpartition("/")[2]
    name = name[:-len(".quire")] if name.endswith(".quire") else name
    return name if _NAME.fullmatch(name) and name not in (".", "..") else "archive"


def _find_program(given: Union[str, "os.PathLike[str]", None]) -> str:
    """The path of quired. Raises PrivateServerFailed."""
    program = os.fspath(given) if given is not None else os.environ.get("QUIRED")
    if program:
        found = shutil.which(program)
    else:
        found = shutil.which("quired") or _program_next_to_quire() or _packaged_program()
    if found is None:
        if program:
            source = "quired" if given is not None else "the environment variable QUIRED"
            raise PrivateServerFailed(f"{program}: is not a program that can be run; correct "
                                      f"{source}")
        raise PrivateServerFailed(
            "the program quired, which opens archives, was found neither in PATH nor next to "
            "quire; install it into PATH, or with pip as the package quired, or name it by the "
            "option quired or the environment variable QUIRED")
    return os.path.realpath(found)


def _program_next_to_quire() -> Optional[str]:
    """The program in the directory of quire, whose name in PATH may be a link."""
    quire = shutil.which("quire")
    if quire is None:
        return None
    return shutil.which("quired", path=os.path.dirname(os.path.realpath(quire)))


def _packaged_program() -> Optional[str]:
    """The program of the package quired, for environments that are not in PATH."""
    package = importlib.util.find_spec("quired")
    if package is None or package.origin is None:
        return None
    # Of an environment, of `pip install --user`, and of `pip install --target`.
    places = (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"),
              os.path.join(os.path.dirname(os.path.dirname(package.origin)), "bin"))
    return next((found for place in places if (found := shutil.which("quired", path=place))), None)


def _command(location: str, memory: Union[int, str, None],
             cache: Union[str, "os.PathLike[str]", None], cache_size: Union[int, str],
             program: str) -> List[str]:
    is_store = location.startswith(_STORES)
    if cache is not None and not is_store:
        raise TypeError(f"cache is for archives in stores, and {location} is a directory")
    command = [program, "serve", f"{_name(location)}={location}", "--log-level", "warning",
               "--reload-interval",
               _RELOAD_INTERVAL_STORE if is_store else _RELOAD_INTERVAL_LOCAL]
    if memory is not None:
        command += ["--memory", str(memory)]
    if is_store:
        directory = os.path.realpath(cache) if cache is not None else _cache_directory(location)
        command += ["--store-cache", f"{directory}:{cache_size}"]
    return command


def _cache_directory(location: str) -> str:
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not root.startswith("/"):
        root = os.path.expanduser("~/.cache")
    endpoint = os.environ.get(f"{_STORE_VARIABLES}ENDPOINT", "")
    return f"{root}/quire/stores/{_hash([os.fsencode(location), os.fsencode(endpoint)])}"


def _hash(parts: List[bytes]) -> str:
    return str(xxhash.xxh3_64_hexdigest(b"\0".join(parts)))


def _server_environment() -> Dict[str, str]:
    return {name: value for name, value in os.environ.items()
            if not name.startswith("QUIRED_") or name.startswith(_STORE_VARIABLES)}


def _directory(place: Place) -> str:
    """That of the server: equal for clients that may share one."""
    parts = [os.fsencode(part) for part in place.command]
    if place.location.startswith(_STORES):
        # Two users of different credentials share nothing.
        parts += sorted(name + b"=" + value for name, value in os.environb.items()
                        if name.startswith((b"AWS_", _STORE_VARIABLES.encode())))
    return f"{_base_directory()}/{_hash(parts)}"


def _base_directory() -> str:
    """The directory of this user's servers, which others cannot enter. Raises
    PrivateServerFailed."""
    # The directory of a server has 16 bytes.
    size_max = _SOCKET_PATH_MAX - len("/0123456789abcdef/socket")
    refusals = []
    for root, name in ((os.environ.get("XDG_RUNTIME_DIR", ""), "quire"),
                       (os.environ.get("TMPDIR", ""), f"quire-{os.geteuid()}"),
                       ("/tmp", f"quire-{os.geteuid()}")):
        path = f"{root.rstrip('/')}/{name}"
        if not root.startswith("/"):
            continue
        if len(os.fsencode(path)) > size_max:
            refusals.append(f"{root}: is too long for the path of a socket")
            continue
        try:
            _make_own_directory(path)
        except OSError as error:
            refusals.append(f"{path}: {error.strerror}")
            continue
        return path
    raise PrivateServerFailed("no directory for a private server: " + "; ".join(refusals)
                              + "; set TMPDIR to a writable directory")


def _make_own_directory(path: str) -> None:
    """Raises OSError if it cannot be made, PrivateServerFailed if it is not of this user alone."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    found = os.lstat(path)
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or mode != 0o700:
        raise PrivateServerFailed(
            f"{path}: must be a directory of user {os.geteuid()} with mode 0700, is "
            f"{'a directory' if stat.S_ISDIR(found.st_mode) else 'another file'} of user "
            f"{found.st_uid} with mode {mode:04o}; remove it")


class _Share:
    """A share of a server, which lives as long as one of its shares. Ends with the process,
    and with the last of its forked children."""

    def __init__(self, clients: int) -> None:
        self._clients = clients

    def is_server_gone(self) -> bool:
        """True if the server has ended, of which it gave no notice."""
        poll = select.poll()
        poll.register(self._clients, 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))

    def close(self) -> None:
        """Ends the share."""
        clients, self._clients = self._clients, -1
        if clients >= 0:
            os.close(clients)

    def __del__(self) -> None:
        self.close()


def _join(directory: str, command: List[str]) -> _Share:
    """Joins the server of a directory, or starts it. Blocks until it answers. Raises
    PrivateServerFailed."""
    while True:
        # Again: a cleaner of temporary files may have removed it. Other users cannot enter it.
        _make_own_directory(os.path.dirname(directory))
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        path = f"{directory}/lock"
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            # The last server has just removed the directory.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                if _is_same(lock, path):
                    return _join_locked(directory, command, lock)
            finally:
                # Not by close(): a child that another thread forks has the file, too.
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)


def _is_same(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _join_locked(directory: str, command: List[str], lock: int) -> _Share:
    fifo = f"{directory}/clients"
    with contextlib.suppress(FileExistsError):
        os.mkfifo(fifo, 0o600)
    try:
        return _Share(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        # No process reads it.
        if error.errno != errno.ENXIO:
            raise
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        share = _Share(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        # It keeps the lock by its standard input, if this process is killed meanwhile.
        try:
            started = subprocess.run(
                [*command, "--private", directory], stdin=lock, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, env=_server_environment(), check=False)
            if started.returncode == 0:
                return share
        except BaseException:
            share.close()
            raise
        share.close()
    finally:
        os.close(reader)
    for name in ("clients", "log", "lock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{directory}/{name}")
    # Fails if another client has created another lock by now.
    with contextlib.suppress(OSError):
        os.rmdir(directory)
    message = started.stderr.decode("utf-8", "replace").strip()
    raise PrivateServerFailed(
        f"{command[0]} did not open {command[2].partition('=')[2]}, exit code "
        f"{started.returncode}: {message or 'it gave no message'}",
        exit_code=started.returncode)


class PrivateClient(Client):
    """A client of a private server, which it joins or starts for the first call, and again if
    the server was killed."""

    def __init__(self, place: Place, options: Mapping[str, Any]) -> None:
        self._place = place
        self._given = dict(options)
        self._directory = _directory(place)
        # Not from the environment: that is for other servers.
        made = _options.make_options(f"unix:{self._directory}/socket", options, environment={})
        if made.uses_tls or made.token is not None or made.token_file is not None:
            raise TypeError("TLS and tokens are for connect(): a private server serves this user "
                            "only, by a unix socket")
        super().__init__(made)
        self._share: Optional[_Share] = None

    def __reduce__(self) -> Any:
        return PrivateClient, (self._place, self._given)

    def __repr__(self) -> str:
        return f"open({self._place.location!r}).client"

    def join(self) -> None:
        """Joins the server, or starts it."""
        with self._lock:
            self._join()

    def _join(self) -> None:
        if self._share is None:
            self._share = _join(self._directory, self._place.command)

    def close(self) -> None:
        super().close()
        with self._lock:
            share, self._share = self._share, None
        if share is not None:
            share.close()

    # --- Hooks of Client.

    def _before_connect(self) -> None:
        self._join()

    def _note_failure(self, error: QuireError) -> None:
        if not isinstance(error, (ServerUnreachable, Draining)):
            return
        with self._lock:
            if self._share is not None and self._share.is_server_gone():
                self._share.close()
                self._share = None
                # The next attempt connects. Other calls of this channel fail by themselves.
                self._channel = None
                self._calls = {}
