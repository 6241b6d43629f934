"""A schedule and its ticks, as words.

A tick is an ordinary job whose id says of which schedule it is and for which time:
`repeat:<schedule>:<ms>`, as BullMQ has it. One tick of a schedule is pending at a time; whoever
claims it adds the next.
"""

import re
from enum import StrEnum

import msgspec

from bullpen.job.names import TICK
from bullpen.job.spec import JobSpec

_TICK_ID = re.compile(re.escape(TICK) + r"(.+):([0-9]+)", re.DOTALL)


class Overlap(StrEnum):
    """What becomes of a tick that comes while the one before still runs."""

    SKIP = "skip"
    """It ends at once, completed, and says in its log why it did not run."""
    ALLOW = "allow"
    """Both run."""


class Timing(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """When a schedule ticks: by `cron` or by `every_ms`, never both."""

    cron: str | None = None
    every_ms: int | None = None
    tz: str | None = None
    """The zone in which `cron` is meant; None is UTC."""
    start_ms: int | None = None
    end_ms: int | None = None
    """No tick is for a later time."""
    limit: int | None = None
    """How many ticks there are in all."""
    offset_ms: int | None = None
    """Where in its interval an `every_ms` ticks: set with its first tick, so that it stays in step."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What is done again and again, and when."""

    queue: str
    id: str
    name: str
    """Of its jobs."""
    data: bytes = b"{}"
    spec: JobSpec = JobSpec()
    timing: Timing
    overlap: Overlap = Overlap.SKIP


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as a store has it, at one moment."""

    schedule: Schedule
    last_ms: int
    """The time of its newest tick, pending or not: whoever changes the schedule must have seen this one."""
    pending: bool
    """Whether that tick is still to be claimed."""
    count: int = 1
    """Which one that tick is, counted from the last time the schedule was changed."""
    ticks: int = 1
    """How many ticks it has had in all."""
    skipped: int = 0
    """How many of them did not run because one before still did."""
    paused: bool = False
    ended: bool = False
    """It ticks no more: its limit or its end is reached."""

    @property
    def queue(self) -> str:
        return self.schedule.queue

    @property
    def id(self) -> str:
        return self.schedule.id

    @property
    def next_ms(self) -> int | None:
        """The time of the next tick; None while there is none."""
        return self.last_ms if self.pending else None


class Tick(msgspec.Struct, frozen=True):
    """Of which schedule a job is a tick, and for which time."""

    schedule: str
    at_ms: int

    @property
    def job_id(self) -> str:
        return f"{TICK}{self.schedule}:{self.at_ms}"


def tick_of(job_id: str) -> Tick | None:
    """What the id says; None if the job is no tick."""
    match = _TICK_ID.fullmatch(job_id) if job_id.startswith(TICK) else None
    return None if match is None else Tick(match[1], int(match[2]))
