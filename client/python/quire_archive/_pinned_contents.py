# SPDX-License-Identifier: Apache-2.0
"""The contents that a dataset reads: one state of an archive, found out without a call of this
process, so that it can still be forked."""
from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from typing import Any, Tuple, Union

from . import _messages, _options
from .client import Archive, connect

_ASK = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
archive = pickle.load(sys.stdin.buffer)
from quire_archive import _pinned_contents
try:
    found = _pinned_contents.ask(archive)
except Exception as error:
    found = error
pickle.dump(found, sys.stdout.buffer)
"""


@dataclasses.dataclass(frozen=True)
class Contents:
    """One state of an archive."""

    name: str
    uuid: str
    # Bytes of all documents.
    size: int
    document_count: int
    # Of ask(): the states before documents were appended, and before some were redacted.
    earlier: Tuple["Contents", ...] = ()
    redacted: Tuple["Contents", ...] = ()


def ask(archive: Archive) -> Contents:
    """Asks the server; that of the uuid, if the archive has one. Raises QuireError."""
    request = _messages.GetArchiveRequest(archive=archive.name)
    # Raises if the archive has no such state.
    info = archive.info()
    # pylint: disable=protected-access
    answer = archive.client._run(archive.client._core.call("GetArchive", archive.name, request))

    def states(found: Any) -> Tuple[Contents, ...]:
        return tuple(Contents(archive.name, state.uuid, state.size_bytes, state.document_count)
                     for state in found)
    return Contents(archive.name, info.uuid, info.size, info.document_count,
                    states(answer.archive.history), states(answer.archive.redacted_states))


def describe(archive: Archive) -> Contents:
    """The same, in a process of its own unless this one has made calls already."""
    if _options.is_used():
        return ask(archive)
    asked = subprocess.run(
        [sys.executable, "-c", _ASK], check=True, stdout=subprocess.PIPE,
        input=pickle.dumps(sys.path) + pickle.dumps(archive)).stdout
    found = pickle.loads(asked)
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Contents)
    return found


def as_archive(archive: Union[Archive, str], name: Any) -> Archive:
    """An archive: itself, or by the address of a server and its name there."""
    if isinstance(archive, str):
        if not isinstance(name, str):
            raise TypeError(f"give the name of an archive of server {archive!r} as `name`")
        return connect(archive).archive(name)
    if name is not None:
        raise TypeError("`name` is for the address of a server; the archive has a name already")
    return archive
