"""A trial: one measurement of one system, in a folder of its own."""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.series import Series

Measured = Mapping[Series, float]

ENQUEUE = "enqueue, SQLite"
DRAIN = "drain, SQLite"
PROCESSES = "drain by several processes, SQLite"
PICKUP_50 = "pickup p50, SQLite"
PICKUP_99 = "pickup p99, SQLite"
CPU_LIFE = "Redis CPU, whole life"
CPU = "Redis CPU"
TRIPS = "round trips"
CALLED = "commands called by scripts"
BYTES = "bytes at rest"
REMEMBERED = "bytes of remembered answers, for a minute"
STORES = ("Redis", "SQLite", "PostgreSQL")
_SPEEDS = ("enqueue", "drain", "drain by several processes", "pickup p50", "pickup p99")
MEASURES = (
    *(f"{measure}, {store}" for measure in _SPEEDS for store in STORES),
    *(CPU_LIFE, CPU, TRIPS, CALLED, BYTES, REMEMBERED),
)
"""In the order of the report; any other measure comes after these."""


class NotMeasured(Exception):
    """There is nothing to measure here, and why."""


class WentWrong(Exception):
    """The measured system did not do what was asked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    series: Sequence[Series]
    measure: Callable[[Path], Awaitable[Measured]]
    """Given an empty folder."""
    once: bool = False
    """Counts work, not time: the same in every round."""


def pickup_series(system: str, setting: str) -> tuple[Series, Series]:
    return Series(system, PICKUP_50, setting, "ms"), Series(system, PICKUP_99, setting, "ms")
