"""Running a queue to empty: handlers are run as a worker runs them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bullpen import (
    Alert,
    Bullpen,
    Call,
    Context,
    FailureKind,
    Hooks,
    JobCancelled,
    Postpone,
    Queue,
    Store,
    Unrecoverable,
    WorkerOptions,
    custom,
)
from bullpen.job.verdicts import Cancelled, Completed, Failed, Postponed, Retry
from bullpen.testing import ManualClock, run_until_empty
from tests.support.drained import verdicts

MINUTE_MS = 60_000


async def test_every_verdict_is_the_workers_own(pen: Bullpen, bullpen_clock: ManualClock) -> None:
    """Unrecoverable errors, cancellation from within and postponement mean what they mean on a worker."""

    @pen.job(attempts=3)
    async def end(ctx: Context, how: str) -> None:
        match how:
            case "never":
                raise Unrecoverable("no use")
            case "stop":
                raise JobCancelled("enough")
            case "later" if bullpen_clock.now_ms() % MINUTE_MS != 1:
                bullpen_clock.advance(1 - bullpen_clock.now_ms() % MINUTE_MS + MINUTE_MS)
                raise Postpone(0, "not now")

    for how in ("never", "stop", "later"):
        await end.add(how=how)
    report = await run_until_empty(pen, clock=bullpen_clock)
    assert verdicts(report) == [Failed, Cancelled, Postponed, Completed]
    assert [run.failure.kind for run in report.runs if run.failure] == [
        FailureKind.UNRECOVERABLE,
        FailureKind.CANCELLED,
    ]


async def test_hooks_middleware_and_alerts_are_called(pen: Bullpen) -> None:
    told: list[str] = []

    async def around(ctx: Context, call: Callable[[], Awaitable[Any]]) -> Any:
        told.append("around")
        return await call()

    @pen.on_alert
    def alert(alert: Alert) -> None:
        told.append(f"alert {alert.name}")

    @pen.job(middleware=[around], hooks=Hooks(on_start=lambda _: told.append("start")))
    async def broken(ctx: Context) -> None:
        raise ValueError("broken")

    await broken.add()
    await run_until_empty(pen)
    assert told == ["start", "around", "alert broken"]


class Reversed:
    name = "reversed"

    def encode(self, plain: bytes) -> bytes:
        return plain[::-1]

    def decode(self, coded: bytes) -> bytes:
        return coded[::-1]


async def test_the_codec_of_the_app_is_used(bullpen_store: Store) -> None:
    pen = Bullpen(bullpen_store, codec=Reversed())

    @pen.job
    async def double(ctx: Context, n: int) -> int:
        return 2 * n

    await double.add(n=21)
    assert [run.result for run in (await run_until_empty(pen)).runs] == [42]


async def test_a_job_that_cannot_be_read_fails_with_an_alert(pen: Bullpen) -> None:
    """It fails without running, as on a worker."""
    alerts: list[str] = []

    @pen.on_alert
    async def alert(alert: Alert) -> None:
        alerts.append(alert.failure.type)

    @pen.job(queue="mail")
    async def welcome(ctx: Context) -> None: ...

    await pen.open()
    await Queue(pen.store, "mail", codec=Reversed()).add("welcome")
    report = await run_until_empty(pen)
    assert verdicts(report) == [Failed]
    assert alerts == ["CodecMissing"]


async def test_logs_and_progress_reach_the_store(pen: Bullpen) -> None:
    @pen.job
    def telling(ctx: Context) -> None:
        ctx.log("half way")
        ctx.progress(50)

    job = await telling.add()
    await run_until_empty(pen)
    assert await job.logs() == ("half way",)
    assert (await job.record()).progress == b"50"


async def test_a_handler_that_hangs_times_out(pen: Bullpen) -> None:
    """A test does not hang because a handler does."""

    @pen.job(timeout=0.01)
    async def hang(ctx: Context) -> None:
        await asyncio.Event().wait()

    await hang.add()
    (run,) = (await run_until_empty(pen)).failed
    assert run.failure is not None
    assert run.failure.kind == FailureKind.TIMEOUT


async def test_batches_get_company_with_at_once(pen: Bullpen) -> None:
    sizes: list[int] = []

    @pen.job
    async def embed(ctx: Context, text: str) -> int: ...  # type: ignore[empty-body]  # the batch does it

    @embed.batch(3)
    async def embed_many(calls: list[Call]) -> list[int]:
        sizes.append(len(calls))
        return [len(call.arguments["text"]) for call in calls]

    for text in ("a", "bb", "ccc", "dddd"):
        await embed.add(text=text)
    report = await run_until_empty(pen, at_once=3)
    assert sizes == [3, 1]
    assert [run.result for run in report.runs] == [1, 2, 3, 4]


async def test_the_worker_options_count(pen: Bullpen, bullpen_clock: ManualClock) -> None:
    """Custom backoffs are given as to a worker."""

    @pen.job(attempts=5, backoff=custom("once"))
    async def flaky(ctx: Context) -> None:
        raise ConnectionError("away")

    await flaky.add()
    options = WorkerOptions(backoffs={"once": lambda attempts, _: 7 if attempts == 1 else -1})
    report = await run_until_empty(pen, clock=bullpen_clock, options=options)
    assert [run.verdict.delay_ms for run in report.runs if isinstance(run.verdict, Retry)] == [7_000]
    assert len(report.failed) == 1
