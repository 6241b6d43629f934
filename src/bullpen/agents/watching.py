"""Looking on at a run, in the process that asks: its log as it grows, and its result once there is one."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from bullpen.agents.words import TaskResult
from bullpen.errors import QueueMissing, ResultTimeout
from bullpen.queue.queue import Queue
from bullpen.records.runs.runs import Runs
from bullpen.records.runs.words import ProgressEvent

_LOOK_EVERY_S = 0.2
_FIRST_LOOK_S, _LAST_LOOK_S = 0.02, 0.5


async def follow(runs: Runs, run_id: str, after: int) -> AsyncIterator[ProgressEvent]:
    """What happens in it after this number, until it is over."""
    while True:
        # Asked before the events are read: what is final then has told its last.
        is_over = (await runs.get(run_id)).state.is_final
        events = await runs.events(run_id, after=after)
        for event in events:
            after = event.number
            yield event
        if not events:
            if is_over:
                return
            await asyncio.sleep(_LOOK_EVERY_S)


async def result(runs: Runs, run_id: str, seconds: float | None) -> TaskResult:
    """What came of it; ResultTimeout if it is not over in time."""
    pause_s = _FIRST_LOOK_S
    try:
        async with asyncio.timeout(seconds):
            while not (await runs.get(run_id)).state.is_final:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LAST_LOOK_S)
    except TimeoutError:
        raise ResultTimeout(f"run {run_id} is not over after {seconds} s") from None
    first = (await runs.tasks(run_id))[0]
    assert first.outcome is not None
    return msgspec.json.decode(first.outcome, type=TaskResult)


async def expected_wait_s(queue: Queue, runs: Runs) -> float | None:
    """How long the next task of the queue will wait, by how long its last ones took; None if that is not known.

    While tasks wait, those that are active fill every slot there is.
    """
    try:
        counts = await queue.counts()
    except QueueMissing:
        return 0.0  # it is the first
    waiting = counts.waiting + counts.prioritized
    if waiting == 0:
        return 0.0
    usual_ms = await runs.usual_ms(queue.name)
    if usual_ms is None or counts.active == 0:
        return None
    return waiting * usual_ms / 1000 / counts.active
