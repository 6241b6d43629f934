"""When a schedule ticks first, and when after a tick. Arithmetic only: no store, no clock.

Intervals go by BullMQ's slots, so that it does not matter who adds the next tick: the tick
after the one for `t` is for `t + every`, or, if that is over, for the next time that is
`offset` into an interval counted from 1970. Ticks that were missed are not made up for.
"""

import msgspec

from bullpen.errors import BadOption
from bullpen.job.schedule import ScheduleRecord, Timing
from bullpen.scheduling.cron import read_cron


def first_ms(timing: Timing, now_ms: int, *, immediately: bool = False) -> int | None:
    """The first tick of a new schedule; None if there is none.

    An interval ticks at once, or at its start; a cron at its next time, or at once if asked.
    """
    start_ms = max(now_ms, timing.start_ms or 0)
    if timing.cron is None or immediately:
        return _within(timing, start_ms if not timing.offset_ms else _slot_after(timing, start_ms - 1))
    # The start itself counts, where it is one of the times.
    later = timing.start_ms is not None and timing.start_ms > now_ms
    return _within(timing, read_cron(timing.cron, timing.tz).next_ms(start_ms - 1 if later else start_ms))


def following_ms(timing: Timing, tick_ms: int, now_ms: int, *, count: int) -> int | None:
    """The tick after the one for `tick_ms`, which was the schedule's `count`th; None after the last."""
    if timing.limit is not None and count >= timing.limit:
        return None
    if timing.cron is not None:
        after_ms = max(tick_ms, now_ms, (timing.start_ms or 0) - 1)
        return _within(timing, read_cron(timing.cron, timing.tz).next_ms(after_ms))
    next_ms = tick_ms + _every(timing)
    return _within(timing, next_ms if next_ms >= now_ms else _slot_after(timing, now_ms))


def resumed_ms(timing: Timing, now_ms: int) -> int | None:
    """The next tick of a schedule that rested: what it missed is not made up for."""
    if timing.cron is None and timing.offset_ms is not None:
        return _within(timing, _slot_after(timing, max(now_ms, (timing.start_ms or 0) - 1)))
    return first_ms(timing, now_ms)


def next_of(record: ScheduleRecord, now_ms: int) -> int | None:
    """The tick after the newest one of a schedule; None if it has ended."""
    return following_ms(record.schedule.timing, record.last_ms, now_ms, count=record.count)


def in_step(timing: Timing, first: int | None) -> Timing:
    """The timing with its place in the interval, which its first tick sets."""
    if timing.every_ms is None or first is None or timing.offset_ms:
        return timing
    return msgspec.structs.replace(timing, offset_ms=first % timing.every_ms)


def is_same(one: Timing, other: Timing) -> bool:
    """Whether both mean the same times; the place in the interval is the schedule's own."""
    return msgspec.structs.replace(one, offset_ms=None) == msgspec.structs.replace(other, offset_ms=None)


def _every(timing: Timing) -> int:
    if not timing.every_ms:
        raise BadOption("every: another program made a schedule with neither a cron nor an interval")
    return timing.every_ms


def _slot_after(timing: Timing, now_ms: int) -> int:
    every_ms = _every(timing)
    slot_ms = now_ms // every_ms * every_ms + (timing.offset_ms or 0)
    return slot_ms if slot_ms > now_ms else slot_ms + every_ms


def _within(timing: Timing, at_ms: int | None) -> int | None:
    return None if at_ms is None or (timing.end_ms is not None and at_ms > timing.end_ms) else at_ms
