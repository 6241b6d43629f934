"""Declaring job types, adding their jobs, and running them."""

import os
import threading
from pathlib import Path

import pytest

from bullpen import (
    BadHandler,
    BadName,
    BadOption,
    Bullpen,
    Context,
    JobFailed,
    JobRecord,
    JobRef,
    State,
    Worker,
    add_all,
)
from bullpen.job.spec import JobSpec
from bullpen.stores.base import AddOutcome
from bullpen.worker.desk import FixedDesk
from tests.app.conftest import StartWorker
from tests.app.models import User, end_it, far, older, where_am_i
from tests.support.places import Place


class _Words:
    """Takes a handler's words in a test."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, line: str) -> None:
        self.lines.append(line)

    def progress(self, value: object) -> None: ...

    def then(self, job: object) -> None: ...


def _context() -> Context:
    return Context(JobRecord(JobRef("mail", "1"), "welcome", b"{}", State.ACTIVE, JobSpec()), {}, FixedDesk(_Words()))


async def test_a_job_type_can_be_called_like_the_function_that_it_is(pen: Bullpen) -> None:
    """A unit test needs no store and no worker."""

    @pen.job
    async def double(ctx: Context, number: int) -> int:
        """Twice."""
        return 2 * number

    @pen.job
    def triple(ctx: Context, number: int) -> int:
        return 3 * number

    assert await double(_context(), 4) == 8
    assert triple(_context(), number=4) == 12
    assert (double.__name__, double.__doc__, repr(double)) == ("double", "Twice.", "<JobType double on default>")


async def test_jobs_of_a_type_have_a_priority_and_those_of_a_queue_have_none(pen: Bullpen) -> None:
    """Else one raw add would overtake all."""

    @pen.job(queue="mail")
    async def welcome(ctx: Context) -> None: ...

    @pen.job(queue="mail", priority=1)
    async def urgent(ctx: Context) -> None: ...

    assert (await (await welcome.add()).record()).priority == 5
    assert (await (await urgent.add()).record()).priority == 1
    assert (await (await urgent.options(priority=20).add()).record()).priority == 20
    assert (await (await pen.queue("mail").add("welcome")).record()).priority == 0


async def test_options_of_the_type_hold_unless_the_add_says_otherwise(pen: Bullpen) -> None:
    @pen.job(queue="mail", attempts=5, tags=["mail"])
    async def welcome(ctx: Context, user_id: int) -> None: ...

    usual = (await (await welcome.add(1)).record()).spec
    other = (await (await welcome.options(tenant="acme", attempts=2).add(user_id=1)).record()).spec
    assert (usual.attempts, usual.tenant, usual.tags) == (5, None, ("mail",))
    assert (other.attempts, other.tenant, other.tags) == (2, "acme", ("mail",))
    with pytest.raises(BadOption, match="did you mean attempts"):
        welcome.options(atempts=3)  # type: ignore[call-arg]
    with pytest.raises(BadOption, match="did you mean priority"):
        pen.job(prioritee=3)  # type: ignore[call-overload]


async def test_an_option_does_not_collide_with_an_argument_of_the_same_name(pen: Bullpen) -> None:
    @pen.job
    async def wait(ctx: Context, delay: int) -> None: ...

    record = await (await wait.options(delay=60).add(delay=3)).record()
    assert (record.data, record.state) == (b'{"delay":3}', State.DELAYED)


async def test_prepared_jobs_are_added_together(pen: Bullpen) -> None:
    @pen.job(queue="mail")
    async def welcome(ctx: Context, user_id: int) -> None: ...

    @pen.job(queue="bills")
    async def bill(ctx: Context, user_id: int) -> None: ...

    mail, bills = pen.queue("mail"), pen.queue("bills")
    jobs = await add_all([(mail, welcome.prepare(1)), (bills, bill.options(id="bill-1").prepare(1))])
    assert [job.outcome for job in jobs] == [AddOutcome.ADDED, AddOutcome.ADDED]
    assert jobs[1].id == "bill-1"


async def test_what_follows_is_added_with_the_completion(pen: Bullpen, start_worker: StartWorker) -> None:
    @pen.job
    async def second(ctx: Context, number: int) -> int:
        return number + 1

    @pen.job
    async def first(ctx: Context, number: int) -> None:
        ctx.then(second.options(id="the-second").prepare(number))

    start_worker()
    await (await first.add(1)).result(timeout=60)
    assert await second.job("the-second").result(timeout=60) == 2


async def test_a_plain_function_runs_in_a_thread(pen: Bullpen, start_worker: StartWorker) -> None:
    @pen.job
    def where(ctx: Context) -> str:
        return threading.current_thread().name

    start_worker()
    assert await (await where.add()).result(timeout=60) != threading.main_thread().name


async def test_a_type_for_a_process_runs_in_one(pen: Bullpen) -> None:
    """Arguments, log and result travel; models by their own way."""
    with far.using(pen.store):
        worker = far.worker()
        await _work(worker, _check_far(worker))


async def _work(worker: Worker, check: object) -> None:
    import asyncio

    working = asyncio.create_task(worker.run())
    try:
        await check  # type: ignore[misc]
    finally:
        worker.stop_now()
        await working


async def _check_far(worker: Worker) -> None:
    ada = User(name="Ada", age=36)
    job = await where_am_i.add(ada)
    result = await job.result(timeout=60)
    assert result["name"] == "AdaAda"
    assert result["pid"] != os.getpid()
    assert await job.logs() == ("hello Ada",)
    assert await (await older.add(ada)).result(timeout=60) == User(name="Ada", age=37)
    wrong = await far.queue("far").add("older", {"user": {"name": "Ada", "age": -1}}, attempts=5)
    with pytest.raises(JobFailed, match="age"):
        await wrong.result(timeout=60)
    assert (await wrong.record()).attempts_made == 1
    dead = await end_it.add()
    with pytest.raises(JobFailed):
        await dead.result(timeout=60)


async def test_a_type_for_a_process_must_be_found_by_name(pen: Bullpen) -> None:
    """Said when the worker is made, not by each job; and a process runs no coroutine."""

    @pen.job(in_process=True)
    def hidden(ctx: Context) -> None: ...

    with pytest.raises(BadHandler, match="hidden"):
        pen.worker()
    with pytest.raises(BadHandler, match="not a coroutine"):

        @pen.job(in_process=True)
        async def never(ctx: Context) -> None: ...


async def test_a_name_is_declared_once_for_a_queue(pen: Bullpen) -> None:
    @pen.job(queue="mail", name="send")
    async def first(ctx: Context) -> None: ...

    @pen.job(queue="letters", name="send")
    async def elsewhere(ctx: Context) -> None: ...

    with pytest.raises(BadName, match="'mail' already has a job type named 'send'"):

        @pen.job(queue="mail", name="send")
        async def second(ctx: Context) -> None: ...

    assert sorted(pen.types) == [("letters", "send"), ("mail", "send")]


async def test_a_worker_for_some_queues_leaves_the_others_alone(pen: Bullpen, start_worker: StartWorker) -> None:
    @pen.job(queue="mail")
    async def welcome(ctx: Context) -> str:
        return "sent"

    @pen.job(queue="bills")
    async def bill(ctx: Context) -> None: ...

    waiting = await bill.add()
    start_worker("mail")
    assert await (await welcome.add()).result(timeout=60) == "sent"
    assert (await waiting.record()).state == State.PRIORITIZED
    with pytest.raises(BadHandler, match="no job type is declared for queue 'nothing'"):
        pen.worker(["nothing"])


async def test_without_arguments_the_environment_says_where_jobs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BULLPEN_STORE", raising=False)
    async with Bullpen():
        assert (tmp_path / ".bullpen" / "queue.db").exists()
    monkeypatch.setenv("BULLPEN_STORE", f"sqlite:{tmp_path / 'other.db'}?sync=normal")
    async with Bullpen():
        assert (tmp_path / "other.db").exists()
    for wrong in ("mysql://here", f"sqlite:{tmp_path / 'x.db'}?sync=never"):
        with pytest.raises(BadOption, match="BULLPEN_STORE"):
            Bullpen(wrong)


async def test_a_codec_of_the_application_is_also_its_workers(place: Place) -> None:
    """Data, results and hooks all see plain values; the store does not."""

    class Backwards:
        name = "backwards"

        def encode(self, plain: bytes) -> bytes:
            return plain[::-1]

        def decode(self, coded: bytes) -> bytes:
            return coded[::-1]

    from bullpen import Hooks

    seen: list[object] = []
    pen = Bullpen(place.store(), codec=Backwards())

    @pen.job(hooks=Hooks(on_complete=lambda ctx, result: seen.append(result)))
    async def echo(ctx: Context, text: str) -> str:
        return text

    async with pen:
        job = await echo.add("secret")
        await _work(pen.worker(), job.result(timeout=60))
        record = await job.record()
        assert b"secret" not in record.data
        assert record.result is not None
        assert b"secret" not in record.result
    assert seen == ["secret"]
