"""Code as users write it, which every type checker accepts: see `test_typing.py`."""

# pyright: strict

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from bullpen import (
    Bullpen,
    Call,
    Context,
    Delivery,
    Hooks,
    Job,
    NewJob,
    Queue,
    SqliteStore,
    StepRetry,
    Worker,
    debounce,
    exponential,
    keep,
)
from bullpen.agents import Agents, Policy, Tool, ToolContext, tool
from bullpen.agents.llm import ScriptedProvider, Turn, table_of
from bullpen.records import Records
from bullpen.testing import ManualClock, Queued, RecordingContext, assert_queued, queued, run_until_empty, test_context

clock = ManualClock()
pen = Bullpen(SqliteStore("queue.db", clock=clock))


async def timed(ctx: Context, call: Callable[[], Awaitable[Any]]) -> Any:
    ctx.log("begins")
    return await call()


@pen.job
async def bare(ctx: Context, user_id: int) -> str:
    return f"{ctx.id} {user_id}"


@pen.job
def bare_plain(ctx: Context, n: int = 1) -> list[int]:
    return [n]


@pen.job(
    queue="mail",
    attempts=5,
    backoff=exponential(1, jitter=0.2),
    timeout=30,
    critical=True,
    keep_failed=keep(100),
    hooks=Hooks(on_start=lambda ctx: ctx.log("start")),
    middleware=[timed],
)
async def welcome(ctx: Context, user_id: int, lang: str = "en", *, urgent: bool = False) -> str:
    ctx.then(count.prepare(3))
    return f"{user_id} {lang} {urgent}"


@pen.job(queue="cpu", in_process=True, priority=7)
def count(ctx: Context, n: int) -> dict[str, int]:
    ctx.check_cancelled()
    return {"n": n}


@pen.job(queue="mail")
async def nothing(ctx: Context) -> None: ...


@bare.batch(10, wait=0.1)
async def bare_batch(calls: list[Call]) -> list[str]:
    return [str(call.arguments["user_id"]) for call in calls]


async def add() -> None:
    assert_type(await bare.add(42), Job[str])
    assert_type(await bare.add(user_id=42), Job[str])
    assert_type(await bare_plain.add(), Job[list[int]])
    assert_type(await welcome.add(42, "de", urgent=True), Job[str])
    assert_type(await welcome.add(user_id=42), Job[str])
    assert_type(await count.add(n=3), Job[dict[str, int]])
    assert_type(await nothing.add(), Job[None])


async def results() -> None:
    job = await welcome.add(42)
    assert_type(await job.result(), str)
    assert_type(await job.result(timeout=timedelta(seconds=10)), str)
    assert_type(await (await count.add(3)).result(timeout=10), dict[str, int])
    assert_type(await welcome.job(job.id).result(), str)
    assert_type(job.id, str)


async def options() -> None:
    later = welcome.options(delay=3600, tenant="acme", tags=["new"], dedup=debounce("42", 5))
    assert_type(await later.add(42, lang="de"), Job[str])
    assert_type(await welcome.options(run_at=datetime(2030, 1, 1, tzinfo=UTC)).add(user_id=42), Job[str])
    assert_type(await count.options(delay=timedelta(minutes=5), backoff=2.5).add(3), Job[dict[str, int]])
    assert_type(later.prepare(42), NewJob)
    assert_type(count.prepare(n=3), NewJob)


async def steps(ctx: Context) -> None:
    assert_type(await ctx.step("a", int, "1", returns=int, retry=3, timeout=timedelta(seconds=5)), int)
    assert_type(await ctx.step("b", bare_plain, ctx), Any)
    assert_type(await ctx.sleep(timedelta(hours=1)), None)
    assert_type(await ctx.wait_for("go", timeout=60), Any)
    assert_type(await ctx.parallel(ctx.step("c", str), ctx.sleep(5)), list[Any])
    assert_type(await ctx.signal("mail", "1", "go", {"by": "ada"}), Delivery)
    assert_type(ctx.step_key, str)
    async with ctx.saga() as saga:
        assert_type(await saga.step("d", str, 1, undo=print, retry=StepRetry(attempts=2), returns=str), str)
    assert_type(ctx.sync.step("e", int, "1", returns=int), int)


async def direct() -> None:
    context = test_context(attempt=2, tenant="acme")
    assert_type(context, RecordingContext)
    assert_type(await welcome(context, user_id=42), str)
    assert_type(count(context, 3), dict[str, int])
    assert_type(bare_plain(context), list[int])
    assert_type(await nothing(context), None)
    assert_type(context.logs, list[str])


async def lower_level(ctx: Context) -> None:
    queue = pen.queue("mail")
    assert_type(queue, Queue)
    job = await queue.add("welcome", {"user_id": 42}, delay=5, attempts=3)
    assert_type(job, Job[Any])
    assert_type(await queue.add_bulk([welcome.prepare(42), count.prepare(3)]), list[Job[Any]])
    assert_type(pen.worker(["mail"]), Worker)


async def testing() -> None:
    report = await run_until_empty(pen, clock=clock)
    assert_type([run.name for run in report.of(welcome)], list[str])
    assert_type(await queued(pen, welcome.options(delay=5), user_id=42), list[Queued])
    await assert_queued(pen, count, n=3)
    with pen.using(SqliteStore("other.db")) as same:
        assert_type(same, Bullpen)


@tool(policy=Policy.READ_ONLY)
async def weather(ctx: ToolContext, city: str) -> str:
    """The weather in a city."""
    return f"{ctx.task_id} {city}"


async def agents() -> None:
    assert_type(weather, Tool)
    async with await Records.open("sqlite:records.db") as records:
        assert_type(records, Records)
    provider = ScriptedProvider(lambda request: Turn(text=request.model))
    await Agents(pen, providers=[provider], models=table_of({}), tools=[weather]).close()
