# SPDX-License-Identifier: Apache-2.0
"""The steps of the two clients: what is to be done on the network, by whichever way.

A generator yields a step and is sent its result, or thrown the QuireError. The clients
carry the steps out, blocking or with asyncio.
"""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Generator, Optional, Sequence, TypeVar, Union

T = TypeVar("T")


@dataclasses.dataclass
class Call:
    """Makes a call with one answer, which is the result.

    `archive`: whose server is asked, where a proxy routes calls; empty: the default one.
    `attempt`: see _options.with_route().
    """

    method: str
    archive: str
    request: Any
    timeout: float
    attempt: int = 0


@dataclasses.dataclass
class Start:
    """Starts such a call; the result is for Finish."""

    method: str
    archive: str
    request: Any
    timeout: float


@dataclasses.dataclass
class Compute:
    """Starts a function in another thread; the result is for Finish."""

    function: Callable[[], Any]


@dataclasses.dataclass
class Finish:
    """Waits for what was started, and returns its result."""

    started: Any


@dataclasses.dataclass
class Open:
    """Opens a stream, the result. Without a request, requests are sent by Send."""

    method: str
    archive: str
    request: Any = None
    attempt: int = 0


@dataclasses.dataclass
class Receive:
    """Waits for the next message of a stream; None at its end.

    With `or_keys` the result is KEYS as soon as the caller has further keys, if
    these come asynchronously.
    """

    stream: Any
    or_keys: bool = False


@dataclasses.dataclass
class Send:
    """Sends a message; None ends sending. Does not wait."""

    stream: Any
    message: Any


@dataclasses.dataclass
class Close:
    """Ends a stream, in whatever state."""

    stream: Any


@dataclasses.dataclass
class Sleep:
    """Waits."""

    seconds: float


@dataclasses.dataclass
class Pull:
    """Takes up to `count` of the caller's keys; the result is these and whether they
    were the last.

    Keys that come asynchronously are waited for only with `may_wait`, and only for the
    first. What the caller's iterator raises ends the steps.
    """

    count: int
    may_wait: bool


@dataclasses.dataclass
class Emit:
    """Hands results to the caller, in order."""

    values: Sequence[Any]


# Result of Receive.
KEYS = object()

Step = Union[Call, Start, Compute, Finish, Open, Receive, Send, Close, Sleep, Pull, Emit]
Steps = Generator[Step, Any, T]


@dataclasses.dataclass(frozen=True)
class ArchiveName:
    """An archive; with a uuid only in the state that has it."""

    name: str
    uuid: Optional[str] = None

    def set(self, request: Any) -> Any:
        """Sets the archive of a request."""
        request.archive = self.name
        if self.uuid is not None:
            request.archive_uuid = self.uuid
        return request
