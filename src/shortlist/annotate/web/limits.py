"""How much and how fast: the sizes of bodies, the rates of failed sign-ins and of submissions."""

import ipaddress
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from shortlist.annotate.problems import TooMany

MANY_KEYS = 10_000


@dataclass(frozen=True)
class Limits:
    """What a server allows. People answer about once a second at best; programs may be faster.

    Of a stranger's body no more than `anonymous_bytes` is read. A body has `body_seconds`, and what came already buys
    more time at `body_bytes_per_second`.
    """

    anonymous_bytes: int = 64 * 1024
    body_bytes: int = 1024 * 1024
    upload_bytes: int = 64 * 1024 * 1024
    body_seconds: float = 15
    body_bytes_per_second: float = 32 * 1024
    failed_sign_ins_per_minute: float = 10
    submits_per_second: float = 50


class Rate:
    """A bucket per key: `burst` at once, refilled at `per_second`."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def spend(self, key: str) -> None:
        """Take one from the key's bucket; refuse if it is empty."""
        with self._lock:
            level = self._level(key)
            if level < 1:
                raise TooMany("too_fast", "too many requests: wait a moment and try again")
            if len(self._buckets) > MANY_KEYS:
                full = [name for name in self._buckets if self._level(name) >= self.burst]
                for name in full:
                    del self._buckets[name]
            self._buckets[key] = (level - 1, self._clock())

    def _level(self, key: str) -> float:
        level, at = self._buckets.get(key, (self.burst, 0.0))
        return min(self.burst, level + (self._clock() - at) * self.per_second)


def is_address(host: str) -> bool:
    """Whether `host` is an IP address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
