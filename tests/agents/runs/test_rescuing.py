"""A job that ends while nobody works on it takes its task with it: on record, with what it held given back."""

import asyncio
import uuid
from collections.abc import Sequence

import msgspec
import pytest

from bullpen import WorkerOptions
from bullpen.agents import rescuing, workshop
from bullpen.agents.agents import Agents
from bullpen.agents.ending import Ending, budget_of
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.words import Stop
from bullpen.agents.rescuing import Rescuer
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.agents.words import Submitted, TaskRequest, TaskTerms, problem_at
from bullpen.job.entries import JournalEntry
from bullpen.job.record import Failure, FailureKind
from bullpen.job.state import State
from bullpen.job.verdicts import Failed, Settlement
from bullpen.records import chores
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.records.runs.runs import Runs
from bullpen.records.runs.words import ProgressKind, Task, TaskState
from tests.agents.runs.conftest import TENANT, Making, jobs_are_there, says, working
from tests.worker.waiting import until

_PATIENCE_S = 60
_QUEUE = "agent-standard"


def _rescuer(agents: Agents, records: Records) -> Rescuer:
    return Rescuer(records, agents.pen.store, unchanged_ms=0)


async def _in_the_queue(agents: Agents) -> Submitted:
    """Submitted, and its job is there."""
    sent = await agents.submit("go", tenant=TENANT)
    await jobs_are_there(agents)
    return sent


async def _claimed(agents: Agents, *, lease_ms: int) -> Settlement:
    """Taken by a worker that is not there; how it would settle a job that ran too long."""
    claimed = await agents.pen.store.claim({_QUEUE: 1}, worker="doomed", lease_ms=lease_ms, request=uuid.uuid4().hex)
    (job,) = claimed.jobs
    return Settlement(job.lease, Failed(Failure("timed out after 9 s", FailureKind.TIMEOUT, "TimeoutError")))


async def _loses_its_worker(agents: Agents, sent: Submitted) -> None:
    """Once more than it may."""
    await _claimed(agents, lease_ms=1)
    job = agents.pen.queue(_QUEUE).job(sent.task_id)
    worker = agents.pen.worker(options=WorkerOptions(max_stalled=0, lease=1))
    running = asyncio.create_task(worker.run())
    try:
        await until(job.record, lambda record: record.state is State.FAILED)
    finally:
        worker.stop()
        await running


async def _nothing_is_held(records: Records) -> None:
    purse = await records.credits.balance(TENANT)
    assert (purse.held, purse.spent) == (0, 0)
    assert await records.credits.unbalanced() == []


async def test_a_job_that_was_cancelled_in_the_queue_cancels_its_task(agents_with: Making, records: Records) -> None:
    async with agents_with(says("hello")) as agents:
        sent = await _in_the_queue(agents)
        await agents.pen.queue(_QUEUE).job(sent.task_id).cancel("by the operator")
        [result] = await _rescuer(agents, records).rescue()
        assert (result.run_id, result.status) == (sent.run_id, "cancelled")
        assert result.error is not None
        assert result.error.code == "E012"
        assert [event.kind async for event in agents.follow(sent.run_id)] == [ProgressKind.JOB_CANCELLED]
        await _nothing_is_held(records)


async def test_a_job_that_was_removed_fails_its_task(agents_with: Making, records: Records) -> None:
    async with agents_with(says("hello")) as agents:
        sent = await _in_the_queue(agents)
        await agents.pen.queue(_QUEUE).job(sent.task_id).remove()
        [result] = await _rescuer(agents, records).rescue()
        assert (result.task_id, result.status) == (sent.task_id, "failed")
        assert result.error is not None
        assert (result.error.code, result.error.retryable) == ("E999", True)
        assert "queue" not in result.error.user_facing_message
        await _nothing_is_held(records)


async def test_a_job_that_lost_its_worker_too_often_fails_its_task(agents_with: Making, records: Records) -> None:
    async with agents_with(says("hello")) as agents:
        sent = await _in_the_queue(agents)
        await _loses_its_worker(agents, sent)
        assert (await agents.run(sent.run_id)).state is TaskState.QUEUED
        [result] = await _rescuer(agents, records).rescue()
        assert result.error is not None
        assert result.error.code == "E999"
        await _nothing_is_held(records)


async def test_a_job_that_lost_its_worker_too_often_goes_on_as_long_as_its_task_gets_further(
    agents_with: Making, records: Records
) -> None:
    """Once for each step that was done; a task that loses all its workers at one step ends."""
    looked = asyncio.Event()
    go_on = asyncio.Event()

    @tool(policy=Policy.READ_ONLY)
    async def look() -> str:
        """Look."""
        looked.set()
        await go_on.wait()
        return "seen"

    def answer(request: Request) -> Turn:
        calls = () if request.messages[-1].role is Role.TOOL else (CallTurn("look", {}, id="c1"),)
        return Turn(text="" if calls else "done", calls=calls, usage=Usage(10, 20))

    async def up_to_the_call() -> None:
        looked.clear()
        async with working(agents, grace=0):
            await looked.wait()

    async with asyncio.timeout(_PATIENCE_S), agents_with(answer, [look]) as agents:
        sent = await _in_the_queue(agents)
        job = agents.pen.queue(_QUEUE).job(sent.task_id)
        await up_to_the_call()
        await _loses_its_worker(agents, sent)
        assert await _rescuer(agents, records).rescue() == []
        assert (await job.record()).state is State.PRIORITIZED, "the model has answered since it began"
        go_on.set()
        async with working(agents):
            assert (await agents.result(sent.run_id)).output == "done"
        told = [event async for event in agents.follow(sent.run_id)]
        assert len([event for event in told if event.kind is ProgressKind.LLM_COMPLETED]) == 2
        go_on.clear()
        other = await _in_the_queue(agents)
        await up_to_the_call()
        await _loses_its_worker(agents, other)
        await _rescuer(agents, records).rescue()
        await up_to_the_call()
        await _loses_its_worker(agents, other)
        [result] = await _rescuer(agents, records).rescue()
        assert result.error is not None
        assert (result.task_id, result.error.code) == (other.task_id, "E999")
        assert (await records.credits.balance(TENANT)).held == 0
        assert await records.credits.unbalanced() == []


async def test_a_job_that_ran_beyond_the_workers_limit_ends_its_task_as_too_long(
    agents_with: Making, records: Records
) -> None:
    async with agents_with(says("hello")) as agents:
        await _in_the_queue(agents)
        await agents.pen.store.settle([await _claimed(agents, lease_ms=60_000)], request="settle")
        [result] = await _rescuer(agents, records).rescue()
        assert result.error is not None
        assert (result.status, result.error.code) == ("timeout", "E011")
        await _nothing_is_held(records)


async def test_tasks_that_wait_or_run_or_are_not_in_the_queue_yet_are_left_alone(
    agents_with: Making, records: Records
) -> None:
    async with agents_with(says("hello")) as agents:
        await _in_the_queue(agents)
        await _claimed(agents, lease_ms=60_000)
        await _in_the_queue(agents)
    # No relay any more: the job of the next is in the outbox only.
    async with agents_with(says("hello"), deposit=0) as agents:
        assert agents._relay is not None
        await agents._relay.stop()
        await agents.submit("go", tenant=TENANT)
        assert await _rescuer(agents, records).rescue() == []


async def test_all_are_looked_at_in_turn_however_many_there_are(
    agents_with: Making, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescuing, "_PAGE", 2)
    async with agents_with(says("hello")) as agents:
        sent = [await _in_the_queue(agents) for _ in range(5)]
        last = max(sent, key=lambda one: one.task_id)
        await agents.pen.queue(_QUEUE).job(last.task_id).remove()
        rescuer = _rescuer(agents, records)
        found = [result.task_id for _ in range(3) for result in await rescuer.rescue()]
        assert found == [last.task_id]


async def test_agents_that_are_open_see_to_it_by_themselves(
    agents_with: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(workshop, "_RESCUE_EVERY_S", 0.05)
    monkeypatch.setattr(rescuing, "UNCHANGED_MS", 0)
    async with agents_with(says("hello")) as agents:
        sent = await _in_the_queue(agents)
        await agents.pen.queue(_QUEUE).job(sent.task_id).remove()
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.status == "failed"


async def test_a_task_whose_journal_cannot_be_read_does_not_keep_others_from_being_ended(
    agents_with: Making, records: Records
) -> None:
    async with agents_with(says("hello")) as agents:
        broken, other = sorted([await _in_the_queue(agents) for _ in range(2)], key=lambda one: one.task_id)
        async with records.database.writing() as connection:
            journal = JournalOn(connection, records.database)
            await journal.open(broken.task_id)
            await journal.begin(broken.task_id, 1)
            await journal.append(broken.task_id, [JournalEntry(0, "llm:look", value=b"[]", epoch=1)], epoch=1)
        for sent in (broken, other):
            await agents.pen.queue(_QUEUE).job(sent.task_id).remove()
        assert [result.task_id for result in await _rescuer(agents, records).rescue()] == [other.task_id]


async def test_a_chore_that_fails_by_something_new_is_done_again_and_so_are_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chores, "LOOK_EVERY_S", 0.01)
    often, failed = asyncio.Event(), 0

    async def fail() -> None:
        nonlocal failed
        failed += 1
        raise KeyError("nobody thought of it")

    async def work() -> None:
        if failed > 1:
            often.set()

    doing = chores.Chores(chores.Chore("odd", 0, fail), chores.Chore("work", 0, work))
    doing.start()
    async with asyncio.timeout(_PATIENCE_S):
        await often.wait()
    await doing.stop()
    assert "odd: failed" in caplog.text


async def test_the_end_of_the_last_part_of_a_research_wakes_the_research(
    agents_with: Making, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(workshop, "_RESCUE_EVERY_S", 0.05)
    monkeypatch.setattr(rescuing, "UNCHANGED_MS", 0)
    request = TaskRequest(prompt="the sky", task_type="wide_research", questions=("sun", "moon"))
    async with agents_with(says("hello")) as agents:
        sent = await agents.submit(request, tenant=TENANT)
        await jobs_are_there(agents)
        await agents.pen.queue(_QUEUE).pause()
        async with working(agents):
            parent = agents.pen.queue("research-wide").job(sent.task_id)
            await until(parent.record, lambda record: record.state is State.DELAYED)
            parts = [task.id for task in await agents.tasks(sent.run_id) if task.parent is not None]
            await jobs_are_there(agents)
            for part in parts:
                await agents.pen.queue(_QUEUE).job(part).remove()
            # By itself it looks after five minutes only.
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.error is not None
        assert "0 of 2" in result.error.message
        assert (await records.credits.balance(TENANT)).held == 0
        assert await records.credits.unbalanced() == []


async def test_a_worker_gives_a_task_its_own_time_not_the_usual_five_minutes(agents_with: Making) -> None:
    async with agents_with(says("hello")) as agents:
        sent = await _in_the_queue(agents)
        record = await agents.pen.queue(_QUEUE).job(sent.task_id).record()
        assert record.spec.timeout_ms is not None
        assert record.spec.timeout_ms > 2 * 3_600_000
        async with working(agents):
            assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "hello"


async def _fanned_out(agents: Agents, records: Records) -> tuple[Submitted, list[str]]:
    """A research that waits, and the tasks that it made, whose jobs wait too."""
    await agents.pen.queue(_QUEUE).pause()
    request = TaskRequest(prompt="the sky", task_type="wide_research", questions=("sun", "moon"))
    sent = await agents.submit(request, tenant=TENANT)
    async with working(agents):
        job = agents.pen.queue("research-wide").job(sent.task_id)
        await jobs_are_there(agents)
        await until(job.record, lambda record: record.state is State.DELAYED)
        await jobs_are_there(agents)
    assert (await records.credits.balance(TENANT)).held > 0
    return sent, [task.id for task in await agents.tasks(sent.run_id) if task.parent is not None]


@pytest.mark.parametrize("how", ["cancelled", "removed"])
async def test_a_research_whose_job_is_gone_ends_with_the_tasks_that_it_made(
    agents_with: Making, records: Records, how: str
) -> None:
    async with agents_with(says("hello")) as agents:
        sent, parts = await _fanned_out(agents, records)
        job = agents.pen.queue("research-wide").job(sent.task_id)
        await (job.cancel("by the operator") if how == "cancelled" else job.remove())
        ended = await _rescuer(agents, records).rescue()
        assert {result.task_id for result in ended} == {sent.task_id, *parts}
        assert {task.state for task in await agents.tasks(sent.run_id) if task.id in parts} == {TaskState.CANCELLED}
        for part in parts:
            record = await agents.pen.queue(_QUEUE).job(part).record()
            assert record.finished_ms is not None, "nobody is to begin it"
        await _nothing_is_held(records)


async def test_a_research_that_fans_out_while_it_is_cancelled_leaves_nothing_behind(
    agents_with: Making, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cancels has looked at its tasks before there were any but the research."""
    looked, fanned_out = asyncio.Event(), asyncio.Event()
    first_tasks = Runs.first_tasks

    async def slow(self: Runs, run_ids: Sequence[str]) -> dict[str, Task]:
        found = await first_tasks(self, run_ids)
        looked.set()
        await fanned_out.wait()
        return found

    async with agents_with(says("hello")) as agents:
        await agents.pen.queue("research-wide").pause()
        request = TaskRequest(prompt="the sky", task_type="wide_research", questions=("sun", "moon"))
        sent = await agents.submit(request, tenant=TENANT)
        await agents.pen.queue(_QUEUE).pause()
        monkeypatch.setattr(Runs, "first_tasks", slow)
        cancelling = asyncio.create_task(agents.cancel(sent.run_id))
        async with asyncio.timeout(_PATIENCE_S):
            await looked.wait()
        await agents.pen.queue("research-wide").resume()
        async with working(agents):
            tasks = await until(lambda: agents.tasks(sent.run_id), lambda tasks: len(tasks) == 3)
            fanned_out.set()
            ended = await cancelling
        assert {result.task_id for result in ended} == {task.id for task in tasks}
        assert all(task.state is TaskState.CANCELLED for task in await agents.tasks(sent.run_id))
        await _nothing_is_held(records)


async def test_a_research_that_its_own_worker_ends_takes_the_tasks_with_it(
    agents_with: Making, records: Records
) -> None:
    """As one whose time is over between its fan-out and its rest."""
    async with agents_with(says("hello")) as agents:
        sent, parts = await _fanned_out(agents, records)
        task = await records.runs.task(sent.task_id)
        budget = budget_of(task, msgspec.json.decode(task.terms, type=TaskTerms))
        recorder = Recorder(records.database, task.id, 99, budget=budget, run_id=task.run)
        await recorder.begin()
        ender = (await agents.workshop()).ender
        result = await ender.end_own(recorder, task, Ending(Stop.TIMEOUT, problem_at(Stop.TIMEOUT)))
        assert result.status == "timeout"
        assert {task.state for task in await agents.tasks(sent.run_id) if task.id in parts} == {TaskState.CANCELLED}
        await _nothing_is_held(records)
