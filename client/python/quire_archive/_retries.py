# SPDX-License-Identifier: Apache-2.0
"""When a failed call is repeated."""
from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Optional

from ._steps import Sleep, Steps
from .errors import ArchiveOpening, CallCancelled, DeadlinePassed, QuireError

if TYPE_CHECKING:
    from ._core import Core

_BACKOFF_GROWTH_MAX = 20
# Longest wait for a delay that the server names, and its largest random part.
_TOLD_DELAY_MAX = 30.0
_TOLD_JITTER_MAX = 0.2


class Retries:
    """Decides if and when a call is repeated.

    - The server named a delay (RetryInfo): as often as needed within the time limit. The delay
      is a little longer than asked, at random, so that clients do not return at once; at most
      30 s; and grows if the server asks for next to none.
    - Other UNAVAILABLE: attempts_max attempts in a row. A server that has answered before gets
      the rest of the time limit.
    - Other errors: not repeated.
    """

    def __init__(self, core: Core, end: Optional[float] = None) -> None:
        """`end`: time at which all attempts of a call with one answer end. None, for streams:
        idle_max after the first failure since progress."""
        self._core = core
        self._start = time.monotonic()
        self._end = end
        # Progress since the last error.
        self._has_advanced = False
        self._forget()

    def _forget(self) -> None:
        # Failures in a row: all, those without a delay since the last with one, and those after
        # which proxies select another server.
        self._failure_count = self._untold_count = self._passed_on_count = 0
        self._first_failure = 0.0
        # The last failure with a delay of the server, and their number.
        self._told: Optional[QuireError] = None
        self._told_count = 0

    @property
    def attempt(self) -> int:
        """Value of the metadata quire-attempt, see _options.with_route()."""
        return self._passed_on_count

    def note_progress(self) -> None:
        """Attempts and time are counted from here."""
        if self._failure_count:
            self._forget()
        self._has_advanced = True
        self._core.has_answered = True

    def delay_after_stream(self, error: QuireError) -> Optional[float]:
        """The same as delay_after(), for a stream that continues where it was. It is opened
        again at once if it was cancelled after progress: servers cancel calls whose client
        was slow."""
        has_advanced, self._has_advanced = self._has_advanced, False
        if has_advanced and isinstance(error, CallCancelled):
            return 0.0
        return self.delay_after(error)

    def wait_after(self, error: QuireError) -> Steps[None]:
        """Waits until the next attempt. Raises final_error() if there is none."""
        delay = self.delay_after(error)
        if delay is None:
            raise self.final_error(error)
        yield Sleep(delay)

    def delay_after(self, error: QuireError) -> Optional[float]:
        """Seconds until the next attempt; None if there is none."""
        is_unavailable = error.code == "UNAVAILABLE"
        is_told = (error.retry_after is not None
                   and error.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"))
        if not is_unavailable and not is_told:
            return None
        self._failure_count += 1
        if self._failure_count == 1:
            self._first_failure = time.monotonic()
        # While a server opens an archive, another one would open it, too.
        self._passed_on_count += is_unavailable and not isinstance(error, ArchiveOpening)
        if not is_told:
            self._untold_count += 1
            return self._backoff()
        assert error.retry_after is not None
        # The server is there: it opens the archive, or the quota fills again.
        self._core.has_answered = True
        self._told = error
        self._told_count += 1
        self._untold_count = 0
        return self._delay_as_told(error.retry_after)

    def _time_left(self) -> float:
        end = self._end
        if end is None:
            end = self._first_failure + self._core.options.idle_max
        return end - time.monotonic()

    def _delay_as_told(self, told: float) -> Optional[float]:
        least = self._core.options.retry_backoff / 10 * _growth(self._told_count)
        delay = min(max(told, least), _TOLD_DELAY_MAX)
        left = self._time_left()
        if max(told, delay) >= left:
            return None
        return delay + min(delay * _TOLD_JITTER_MAX, (left - delay) / 2) * random.random()

    def _backoff(self) -> Optional[float]:
        options = self._core.options
        left = self._time_left()
        may_come_back = options.attempts_max > 1 and self._core.has_answered and left > 0
        if self._untold_count >= options.attempts_max and not may_come_back:
            return None
        delay = options.retry_backoff * _growth(self._untold_count) * random.uniform(0.5, 1.0)
        # A stream may be tried attempts_max times in any time.
        return None if self._end is not None and delay >= left else delay

    def final_error(self, error: QuireError) -> QuireError:
        """The error of a call whose last attempt failed with `error`. If the time limit ended
        waiting for a server that named a delay, it is the server's and says so."""
        told = self._told
        is_late = isinstance(error, DeadlinePassed)
        if told is None or (error is not told and not is_late):
            return error
        options = self._core.options
        since = self._first_failure if self._end is None else self._start
        count = self._failure_count + is_late
        attempts = "one attempt" if count == 1 else f"{count} attempts"
        last = ("the last one without an answer" if is_late
                else f"as the server asks to wait {told.retry_after:g} s")
        limit = f"idle_max is {options.idle_max:g} s" if self._end is None \
            else f"the deadline is {options.deadline:g} s"
        return type(told)(
            f"{told}; gave up after {time.monotonic() - since:.3g} s and {attempts}, {last} and "
            f"{limit}; allow more time, or try again later", code=told.code, reason=told.reason,
            metadata=told.metadata, retry_after=told.retry_after)


def _growth(failure_count: int) -> int:
    """Factor of the delay after `failure_count` failures in a row."""
    return min(1 << min(failure_count - 1, 10), _BACKOFF_GROWTH_MAX)
