# SPDX-License-Identifier: Apache-2.0
"""What the programs of this package share: options, messages, files."""
from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
from typing import IO, Callable, Iterator

from .client import Client, connect
from .errors import QuireError


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the program quire that say how to connect."""
    group = parser.add_argument_group("connection")
    group.add_argument("--server", metavar="ADDRESS",
                       help="HOST:PORT or unix:PATH (default QUIRE_SERVER or 127.0.0.1:7420)")
    group.add_argument("--tls", action="store_true", help="Encrypt the connection")
    group.add_argument("--ca", metavar="FILE", help="Certificates to trust (QUIRE_CA)")
    group.add_argument("--cert", metavar="FILE", help="Certificate of this client (QUIRE_CERT)")
    group.add_argument("--key", metavar="FILE", help="Private key of --cert (QUIRE_KEY)")
    group.add_argument("--tls-name", metavar="NAME",
                       help="Name in the server's certificate if it differs from ADDRESS")
    group.add_argument("--token-file", metavar="FILE", help="File with a token (QUIRE_TOKEN_FILE)")


def connect_as(arguments: argparse.Namespace) -> Client:
    """A client with these options."""
    return connect(arguments.server, tls=arguments.tls, ca_file=arguments.ca,
                   cert_file=arguments.cert, key_file=arguments.key,
                   server_name=arguments.tls_name, token_file=arguments.token_file)


# Characters of the name of a file that the name of the file aside begins with.
_ASIDE_NAME_CHARACTERS = 40
# Controls of terminals, and what stands for bytes that are not UTF-8.
_NOT_PRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(message: str) -> str:
    """The message without what disturbs a terminal: such bytes become \\xNN. Messages hold
    texts of servers and names in files."""
    return _NOT_PRINTABLE.sub(lambda match: "".join(
        f"\\x{byte:02X}" for byte in _bytes_of(match.group())), message)


def _bytes_of(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")


def say(program: str, message: str) -> None:
    """Prints a message to standard error, on one line."""
    print(f"{program}: {printable(message)}", file=sys.stderr)


def run_program(program: str, run: Callable[[], int]) -> int:
    """The exit code of `run`; failures become a message and code 1."""
    try:
        code = run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of standard output has ended. Python must not write to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (QuireError, OSError, ValueError) as error:
        say(program, str(error))
        return 1


def need_module(program: str, extra: str, error: ImportError) -> int:
    """Says how to install a module that is missing; returns the exit code."""
    say(program, f"needs the module {error.name}; install quire-archive[{extra}]")
    return 1


@contextlib.contextmanager
def replaced_file(path: str, sync: bool = True) -> Iterator[IO[bytes]]:
    """A new file that replaces `path` on a clean exit: written aside, synced, renamed. Without
    `sync` it may be lost, or empty, if the machine stops soon afterwards."""
    directory, name = os.path.split(path)
    directory = directory or "."
    # A name may have 255 bytes, and a character takes at most 4.
    aside = os.path.join(directory, f".{name[:_ASIDE_NAME_CHARACTERS]}.{os.urandom(8).hex()}")
    try:
        # The umask applies: to read it would change that of other threads.
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        # Its own message names the file aside.
        raise type(error)(f"{path}: cannot write to the directory {directory}: "
                          f"{error.strerror}") from None
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        try:
            os.replace(aside, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
        raise
    if sync:
        sync_directory(directory)


def sync_directory(path: str) -> None:
    """Makes the names of a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
