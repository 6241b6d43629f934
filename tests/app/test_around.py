"""Hooks, middleware, alerts and the question whether a job is done already."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bullpen import (
    Alert,
    Bullpen,
    Context,
    Failure,
    FailureKind,
    Hooks,
    JobFailed,
    JobRecord,
    Postpone,
    Severity,
    Unrecoverable,
    Worker,
    WorkerOptions,
    in_process,
)
from tests.app.conftest import StartWorker
from tests.worker import in_other_process

Call = Callable[[], Awaitable[Any]]


async def test_hooks_are_called_as_the_job_goes_on(pen: Bullpen, start_worker: StartWorker) -> None:
    """Plain and async ones, each with the context and what it is about."""
    told: list[tuple[object, ...]] = []

    async def on_start(ctx: Context) -> None:
        told.append(("start", ctx.attempt))

    async def on_progress(ctx: Context, value: object) -> None:
        told.append(("progress", value))

    hooks = Hooks(
        on_start=on_start,
        on_progress=on_progress,
        on_complete=lambda ctx, result: told.append(("complete", result)),
        on_failed=lambda ctx, failure: told.append(("failed", failure.message)),
        on_final_failure=lambda ctx, failure: told.append(("final", failure.message)),
    )

    @pen.job(attempts=2, hooks=hooks)
    async def flaky(ctx: Context) -> str:
        ctx.progress(50)
        await asyncio.sleep(0)  # the hook runs at the next turn of the loop
        if ctx.attempt == 1:
            raise RuntimeError("not yet")
        return "done"

    @pen.job(attempts=2, hooks=hooks)
    async def hopeless(ctx: Context) -> None:
        raise Unrecoverable("never")

    start_worker()
    await (await flaky.add()).result(timeout=60)
    assert told == [
        ("start", 1),
        ("progress", 50),
        ("failed", "not yet"),
        ("start", 2),
        ("progress", 50),
        ("complete", "done"),
    ]
    told.clear()
    with pytest.raises(JobFailed):
        await (await hopeless.add()).result(timeout=60)
    assert told == [("start", 1), ("failed", "never"), ("final", "never")]


async def test_what_a_hook_raises_changes_nothing(
    pen: Bullpen, start_worker: StartWorker, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the hook's own")

    hooks = Hooks(broken, broken, broken, broken, broken)
    pen.on_alert(broken)

    @pen.job(hooks=hooks)
    async def fine(ctx: Context) -> str:
        ctx.progress(1)
        return "fine"

    @pen.job(hooks=hooks)
    async def bad(ctx: Context) -> None:
        raise RuntimeError("the handler's own")

    start_worker()
    assert await (await fine.add()).result(timeout=60) == "fine"
    with pytest.raises(JobFailed, match="the handler's own"):
        await (await bad.add()).result(timeout=60)
    assert "a hook failed; its job is not affected" in caplog.text


async def test_middleware_stands_around_the_call_in_the_order_given(pen: Bullpen, start_worker: StartWorker) -> None:
    """The application's first, then the type's; the first is the outermost. Wherever the handler runs."""
    told: list[str] = []

    def named(name: str) -> Callable[[Context, Call], Awaitable[Any]]:
        async def around(ctx: Context, call: Call) -> Any:
            told.append(f"{name} in")
            result = await call()
            told.append(f"{name} out")
            return f"{result} {name}"

        return around

    pen.middleware += [named("a"), named("b")]

    @pen.job(middleware=[named("c")], hooks=Hooks(on_start=lambda ctx: told.append("start")))
    async def work(ctx: Context) -> str:
        told.append("work")
        return "done"

    @pen.job
    def in_a_thread(ctx: Context) -> str:
        return "thread"

    start_worker()
    assert await (await work.add()).result(timeout=60) == "done c b a"
    assert told == ["start", "a in", "b in", "c in", "work", "c out", "b out", "a out"]
    assert await (await in_a_thread.add()).result(timeout=60) == "thread b a"


async def test_middleware_may_refuse_replace_and_postpone(pen: Bullpen, start_worker: StartWorker) -> None:
    ran: list[str] = []

    async def gate(ctx: Context, call: Call) -> Any:
        match ctx.tenant:
            case "blocked":
                raise Unrecoverable("this tenant is blocked")
            case "cached":
                return "from the cache"
            case "later" if not ran:
                ran.append("postponed")
                raise Postpone(0.01)
        return await call()

    @pen.job(middleware=[gate])
    async def work(ctx: Context) -> str:
        ran.append("work")
        return "done"

    start_worker()
    assert await (await work.options(tenant="cached").add()).result(timeout=60) == "from the cache"
    with pytest.raises(JobFailed, match="this tenant is blocked"):
        await (await work.options(tenant="blocked").add()).result(timeout=60)
    assert not ran
    later = await work.options(tenant="later").add()
    assert await later.result(timeout=60) == "done"
    assert (await later.record()).attempts_made == 1


async def test_a_final_failure_is_an_alert(
    pen: Bullpen, start_worker: StartWorker, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning for each, a high one for critical types; none while attempts are left. Also in the log."""
    alerts: list[Alert] = []
    pen.on_alert(alerts.append)

    @pen.job(attempts=2)
    async def usual(ctx: Context) -> None:
        raise RuntimeError("broken")

    @pen.job(critical=True)
    async def vital(ctx: Context) -> None:
        raise RuntimeError("broken too")

    @pen.job
    async def fine(ctx: Context) -> None: ...

    start_worker()
    await (await fine.add()).result(timeout=60)
    for job_type in (usual, vital):
        with pytest.raises(JobFailed):
            await (await job_type.options(tenant="acme").add()).result(timeout=60)
    told = [(alert.severity, alert.name, alert.tenant, alert.failure.message) for alert in alerts]
    assert told == [
        (Severity.WARNING, "usual", "acme", "broken"),
        (Severity.HIGH, "vital", "acme", "broken too"),
    ]
    logged = [record for record in caplog.records if record.name == "bullpen.alerts"]
    assert [record.levelname for record in logged] == ["WARNING", "ERROR"]
    assert all("failed for good" in record.message for record in logged)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_job_whose_subject_is_done_is_not_run(pen: Bullpen, start_worker: StartWorker, is_async: bool) -> None:
    """The question gets the handler's own arguments; the job completes, and says so in its log."""
    sent: set[int] = set()
    ran: list[int] = []

    def was_sent(user_id: int, lang: str = "en") -> bool:
        return user_id in sent

    async def was_sent_async(user_id: int, lang: str = "en") -> bool:
        return user_id in sent

    @pen.job(skip_if=was_sent_async if is_async else was_sent)
    async def welcome(ctx: Context, user_id: int, lang: str = "en") -> str:
        ran.append(user_id)
        sent.add(user_id)
        return "sent"

    start_worker()
    assert await (await welcome.add(1)).result(timeout=60) == "sent"
    again = await welcome.add(1, lang="fr")
    assert await again.result(timeout=60) is None
    assert await again.logs() == ("already done: not run again",)
    assert await (await welcome.add(2)).result(timeout=60) == "sent"
    assert ran == [1, 2]


async def test_a_question_that_fails_is_a_failed_attempt(pen: Bullpen, start_worker: StartWorker) -> None:
    """Not knowing is no reason to run, nor to skip."""
    asked: list[int] = []

    def cannot_tell(number: int) -> bool:
        asked.append(number)
        if len(asked) == 1:
            raise ConnectionError("the database is away")
        return False

    @pen.job(attempts=2, skip_if=cannot_tell)
    async def work(ctx: Context, number: int) -> str:
        return "ran"

    start_worker()
    job = await work.add(7)
    assert await job.result(timeout=60) == "ran"
    assert asked == [7, 7]
    record = await job.record()
    assert record.failure is None or record.failure.kind == FailureKind.ERROR
    assert isinstance(record.stacks[0], str)


async def test_hooks_see_the_failure_as_it_is_stored(pen: Bullpen, start_worker: StartWorker) -> None:
    seen: list[Failure] = []

    @pen.job(hooks=Hooks(on_final_failure=lambda ctx, failure: seen.append(failure)))
    async def bad(ctx: Context) -> None:
        raise KeyError("x")

    start_worker()
    job = await bad.add()
    with pytest.raises(JobFailed):
        await job.result(timeout=60)
    stored = (await job.record()).failure
    assert stored is not None
    assert [(one.message, one.type, one.kind) for one in seen] == [(stored.message, stored.type, stored.kind)]


async def test_a_job_that_fails_with_no_handler_at_work_is_an_alert_too(
    pen: Bullpen, start_worker: StartWorker
) -> None:
    """One that lost its workers too often, and one whose payload cannot be read; but none that was cancelled."""
    alerts: list[Alert] = []
    enough = asyncio.Event()

    @pen.on_alert
    def on_alert(alert: Alert) -> None:
        alerts.append(alert)
        if len(alerts) == 2:
            enough.set()

    @pen.job(critical=True)
    async def vital(ctx: Context) -> None: ...

    cancelled = await vital.add()
    lost = await vital.options(tenant="acme").add()
    await cancelled.cancel("no need")
    await pen.store.claim({"default": 1}, worker="dead", lease_ms=1, request="claim")
    sealed = await Bullpen(pen.store, codec=_Seal()).queue("default").add("vital", priority=5)
    start_worker(options=WorkerOptions(lease=0.2, max_stalled=0))
    async with asyncio.timeout(60):
        await enough.wait()
    told = {alert.ref: (alert.severity, alert.failure.kind, alert.tenant) for alert in alerts}
    assert told[lost.ref] == (Severity.HIGH, FailureKind.STALLED, "acme")
    assert told[sealed.ref][0] == Severity.HIGH
    assert cancelled.ref not in told


class _Seal:
    name = "seal"

    def encode(self, plain: bytes) -> bytes:
        return plain

    def decode(self, coded: bytes) -> bytes:
        return coded


async def test_a_job_that_expires_at_its_claim_is_an_alert(pen: Bullpen, start_worker: StartWorker) -> None:
    alerts: asyncio.Queue[Alert] = asyncio.Queue()
    pen.on_alert(alerts.put_nowait)

    @pen.job(queue="work", critical=True)
    async def report(ctx: Context) -> None: ...

    past = datetime.now(UTC) - timedelta(seconds=1)
    job = await report.options(start_by=past).add()
    start_worker()
    alert = await asyncio.wait_for(alerts.get(), 60)
    assert (alert.ref, alert.severity, alert.failure.kind) == (job.ref, Severity.HIGH, FailureKind.EXPIRED)


async def test_a_job_whose_process_dies_too_often_is_an_alert(pen: Bullpen) -> None:
    alerts: asyncio.Queue[JobRecord] = asyncio.Queue()
    handlers = {"work": in_process(in_other_process.die)}
    worker = Worker(pen.store, handlers, WorkerOptions(max_stalled=0), on_failed_unrun=alerts.put_nowait)
    working = asyncio.create_task(worker.run())
    job = await pen.queue("work").add("die")
    failed = await asyncio.wait_for(alerts.get(), 60)
    assert failed.ref == job.ref
    worker.stop()
    await working
