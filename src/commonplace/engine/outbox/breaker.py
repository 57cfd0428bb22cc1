"""A circuit breaker: a store that keeps failing is left alone for a while, so that nobody waits for it. Pure."""

from __future__ import annotations

from commonplace.wire.record import Clock

FAILURES = 3  # in a row, after which it opens
FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 300_000


class CircuitBreaker:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pause = FIRST_PAUSE_MS
        self.failures = 0  # in a row
        self.error: str | None = None  # the last of them
        self.retry_at: int | None = None  # while it is open: when one call may try again
        self._is_trying = False  # whether that call is under way

    @property
    def is_open(self) -> bool:
        # Further ahead than any pause it was set before the clock was set back.
        return self.retry_at is not None and 0 < self.retry_at - self._clock() <= LONGEST_PAUSE_MS

    def try_call(self) -> bool:
        """Whether a call may be made. Once a pause is over one may; until it has ended no other does."""
        if self.retry_at is None:
            return True
        if self.is_open:
            return False
        self.retry_at, self._is_trying = self._clock() + self._pause, True
        return True

    def succeeded(self) -> None:
        self.failures, self.error, self.retry_at, self._pause = 0, None, None, FIRST_PAUSE_MS
        self._is_trying = False

    def refused(self, error: str) -> None:
        """It answered that it would not: others may ask, and whether it works is for what comes next to show."""
        self.error, self.retry_at, self._is_trying = error, None, False

    def failed(self, error: str) -> None:
        self.failures += 1
        self.error = error
        if self.is_open and not self._is_trying:
            return  # it was made before the others failed: of twenty at once each would double the pause
        self._is_trying = False
        if self.failures >= FAILURES:
            again = self.failures > FAILURES
            self._pause = min(self._pause * 2, LONGEST_PAUSE_MS) if again else FIRST_PAUSE_MS
            self.retry_at = self._clock() + self._pause
