"""Two clocks with two names: wall time is kept, monotonic time is compared.

Leases, delays and retention are wall time, since they are shared between processes.
How long something took is monotonic time, since wall time may jump.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time in whole milliseconds since 1970, UTC."""

    def mono_ms(self) -> int:
        """Milliseconds that only ever grow; their zero means nothing."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


SYSTEM_CLOCK = SystemClock()
