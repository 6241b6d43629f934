"""What a handler may take and return, and what happens to what does not fit."""

import asyncio
from datetime import date
from typing import Any

import pytest

from bullpen import BadData, BadHandler, Bullpen, Context, FailureKind, JobFailed
from tests.app.conftest import StartWorker
from tests.app.models import Address, Order, Point, User


async def _run(job: Any) -> Any:
    return await job.result(timeout=60)


async def test_every_kind_of_argument_arrives_as_its_type(pen: Bullpen, start_worker: StartWorker) -> None:
    """What a caller gives is what the handler gets: dataclass, TypedDict, Struct, model, and plain values."""
    seen: list[object] = []

    @pen.job
    async def take(
        ctx: Context,
        point: Point,
        address: Address,
        order: Order,
        user: User,
        users: list[User],
        by_name: dict[str, Point],
        day: date,
        maybe: User | None = None,
    ) -> None:
        seen.extend([point, address, order, user, users, by_name, day, maybe])

    start_worker()
    user = User(name="Ada", age=36)
    given: list[Any] = [
        Point(1, 2),
        Address(street="High", town="Ayr"),
        Order(7, ["a"]),
        user,
        [user],
        {"here": Point(3)},
        date(2026, 1, 2),
        user,
    ]
    await _run(await take.add(*given))
    assert seen == given


async def test_defaults_stay_with_the_handler(pen: Bullpen, start_worker: StartWorker) -> None:
    """What the caller leaves out is not in the payload: the worker's own default stands, of any type."""
    default = User(name="nobody", age=0)

    @pen.job
    async def greet(ctx: Context, name: str, user: User = default, greeting: str = "hello") -> str:
        return f"{greeting} {name} and {user.name}"

    start_worker()
    job = await greet.add("Ada")
    assert await job.data() == {"name": "Ada"}
    assert await _run(job) == "hello Ada and nobody"


async def test_a_given_value_of_a_parameter_with_a_default_is_checked(pen: Bullpen) -> None:
    @pen.job
    async def greet(ctx: Context, user: User | None = None, times: int = 1) -> None: ...

    with pytest.raises(BadData, match="times"):
        await greet.add(times="often")  # type: ignore[arg-type]
    with pytest.raises(BadData, match="age"):
        await greet.add(user={"name": "Ada", "age": -1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"user_id": "42"}, r"user_id"),
        ({"user_id": 42, "lang": 3}, r"lang"),
        ({}, "missing a required argument: 'user_id'"),
        ({"user_id": 42, "nickname": "x"}, "unexpected keyword argument 'nickname'"),
        ({"user_id": 42, "point": {"x": 1, "y": "2"}}, r"point\.y"),
        ({"user_id": 42, "lang": object()}, "lang cannot be written as JSON"),
    ],
)
async def test_a_wrong_argument_is_refused_by_name_at_the_add(
    pen: Bullpen, arguments: dict[str, Any], told: str
) -> None:
    """The caller learns at once which field is wrong, and nothing is added."""

    @pen.job(queue="mail")
    async def welcome(ctx: Context, user_id: int, lang: str = "en", point: Point | None = None) -> None: ...

    with pytest.raises(BadData, match=told):
        await welcome.add(**arguments)
    assert "mail" not in await pen.store.queues()


async def test_fields_that_the_handler_does_not_know_are_passed_over(pen: Bullpen, start_worker: StartWorker) -> None:
    """A producer may be ahead of the worker."""

    @pen.job(queue="mail")
    async def welcome(ctx: Context, user_id: int) -> int:
        return user_id

    start_worker()
    job = await pen.queue("mail").add("welcome", {"user_id": 1, "added_next_year": True})
    assert await _run(job) == 1


@pytest.mark.parametrize("payload, told", [({"user_id": "x"}, "user_id"), ({}, "user_id"), ([1], "object")])
async def test_a_wrong_payload_of_another_producer_fails_at_once(
    pen: Bullpen, start_worker: StartWorker, payload: Any, told: str
) -> None:
    """No attempt can mend it, so none is wasted; and the failure names the field."""
    ran = False

    @pen.job(queue="mail", attempts=5)
    async def welcome(ctx: Context, user_id: int) -> None:
        nonlocal ran
        ran = True

    start_worker()
    job = await pen.queue("mail").add("welcome", payload, attempts=5)
    with pytest.raises(JobFailed, match=told):
        await _run(job)
    record = await job.record()
    assert record.attempts_made == 1
    assert record.failure is not None
    assert (record.failure.kind, record.failure.type) == (FailureKind.UNRECOVERABLE, "BadData")
    assert not ran


async def test_results_come_back_as_the_handlers_type(pen: Bullpen, start_worker: StartWorker) -> None:
    @pen.job
    async def point(ctx: Context, x: int) -> Point:
        return Point(x, 1)

    @pen.job
    async def users(ctx: Context) -> list[User]:
        return [User(name="Ada", age=36)]

    @pen.job
    async def nothing(ctx: Context) -> None: ...

    start_worker()
    job = await point.add(3)
    assert await _run(job) == Point(3, 1)
    assert await _run(point.job(job.id)) == Point(3, 1)
    assert await _run(await users.add()) == [User(name="Ada", age=36)]
    assert await _run(await nothing.add()) is None


async def test_a_result_that_is_not_of_the_promised_type_is_told_to_the_caller(
    pen: Bullpen, start_worker: StartWorker
) -> None:
    @pen.job
    async def count(ctx: Context) -> int:
        return "many"  # type: ignore[return-value]

    start_worker()
    job = await count.add()
    with pytest.raises(BadData, match="result of count"):
        await _run(job)


async def test_a_result_that_json_cannot_carry_fails_the_job_at_once(pen: Bullpen, start_worker: StartWorker) -> None:
    @pen.job(attempts=3)
    async def odd(ctx: Context) -> Any:
        return object()

    start_worker()
    with pytest.raises(JobFailed, match="result of odd cannot be written as JSON"):
        await _run(await odd.add())


def test_a_handler_has_a_context_and_named_arguments(tmp_path: Any) -> None:
    pen = Bullpen(str(tmp_path / "queue.db"))
    with pytest.raises(BadHandler, match="first parameter"):

        @pen.job  # type: ignore[arg-type]
        async def bare() -> None: ...

    with pytest.raises(BadHandler, match=r"\*args has no place in a payload"):

        @pen.job
        async def many(ctx: Context, *args: int) -> None: ...

    with pytest.raises(BadHandler, match="cannot be read from JSON"):

        @pen.job
        async def mixed(ctx: Context, either: User | asyncio.Event) -> None: ...
