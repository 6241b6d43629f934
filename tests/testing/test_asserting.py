"""`assert_queued` and its kin: what fits, and what they say when nothing does."""

from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import msgspec
import pytest

from bullpen import BadData, BadOption, Bullpen, Context, Queue, State
from bullpen.testing import ManualClock, assert_not_queued, assert_queued, queued, run_until_empty


class Address(msgspec.Struct):
    city: str


@pytest.fixture
def mail(pen: Bullpen) -> Queue:
    return pen.queue("mail")


async def test_what_is_not_mentioned_may_be_anything(pen: Bullpen) -> None:
    @pen.job(queue="mail")
    async def welcome(ctx: Context, user_id: int, lang: str = "en") -> None: ...

    await welcome.add(user_id=42, lang="de")
    await welcome.add(user_id=43)
    assert len(await assert_queued(pen, welcome)) == 2
    (found,) = await assert_queued(pen, welcome, user_id=42)
    assert found.arguments == {"user_id": 42, "lang": "de"}
    await assert_queued(pen.queue("mail"), welcome, lang="de")
    await assert_not_queued(pen, welcome, user_id=42, lang="en")


async def test_defaults_count_as_given(pen: Bullpen) -> None:
    """The handler will get them, whether the producer wrote them or not."""

    @pen.job
    async def welcome(ctx: Context, user_id: int, lang: str = "en") -> None: ...

    await welcome.add(user_id=42)
    await assert_queued(pen, welcome, user_id=42, lang="en")


async def test_arguments_are_compared_as_python_or_as_json(pen: Bullpen) -> None:
    @pen.job
    async def deliver(ctx: Context, to: Address, when: datetime, stops: tuple[int, ...] = ()) -> None: ...

    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    await deliver.add(to=Address("Rome"), when=noon, stops=(1, 2))
    (found,) = await assert_queued(pen, deliver, to=Address("Rome"), when=noon, stops=[1, 2])
    assert found.arguments == {"to": Address("Rome"), "when": noon, "stops": (1, 2)}
    await assert_queued(pen, deliver, to={"city": "Rome"}, when=ANY)
    await assert_not_queued(pen, deliver, to=Address("Oslo"))
    await assert_not_queued(pen, deliver, to=object())


async def test_options_are_asked_for_as_they_are_given(pen: Bullpen, bullpen_clock: ManualClock) -> None:
    @pen.job(attempts=3)
    async def welcome(ctx: Context) -> None: ...

    tomorrow = bullpen_clock.now() + timedelta(days=1)
    await welcome.options(delay=timedelta(minutes=1), tenant="acme", tags=["a"], timeout=5).add()
    await welcome.options(run_at=tomorrow, start_by=tomorrow, id="mine").add()
    (soon,) = await assert_queued(pen, welcome.options(delay=60, tenant="acme", tags=["a"], timeout=5, attempts=3))
    assert (soon.state, soon.spec.tenant) == (State.DELAYED, "acme")
    (late,) = await assert_queued(pen, welcome.options(run_at=tomorrow, start_by=tomorrow, id="mine"))
    assert late.ref.id == "mine"
    for other in (
        welcome.options(delay=61),
        welcome.options(delay=60, tenant="other"),
        welcome.options(attempts=4),
        welcome.options(id="yours"),
        welcome.options(run_at=tomorrow + timedelta(hours=1)),
        welcome.options(start_by=10),
    ):
        await assert_not_queued(pen, other)


async def test_an_option_as_usual_is_compared_too(pen: Bullpen) -> None:
    """`options(delay=0)` asks for no delay, though that is the usual."""

    @pen.job
    async def welcome(ctx: Context) -> None: ...

    await welcome.options(delay=60).add()
    await assert_not_queued(pen, welcome.options(delay=0))


async def test_jobs_of_a_plain_queue_by_name(mail: Queue) -> None:
    await mail.store.open()
    await mail.add("welcome", {"user_id": 42})
    await mail.add("bye", [1, 2])
    (found,) = await assert_queued(mail, "welcome", user_id=42)
    assert (found.name, found.state, found.arguments) == ("welcome", State.WAITING, {"user_id": 42})
    assert [job.arguments for job in await queued(mail, "bye")] == [{"data": [1, 2]}]
    assert len(await queued(mail)) == 2
    await assert_not_queued(mail, "welcome", user_id=43)


async def test_jobs_of_all_queues(pen: Bullpen) -> None:
    """Without a type: everything that waits on the app's queues, in more than one page."""

    @pen.job(queue="a")
    async def one(ctx: Context, n: int) -> None: ...

    @pen.job(queue="b")
    async def other(ctx: Context) -> None: ...

    for n in range(150):
        await one.add(n=n)
    await other.add()
    assert [job.arguments.get("n") for job in await queued(pen)] == [*range(150), None]
    assert len(await queued(pen, "other")) == 1


async def test_what_ran_is_not_queued(pen: Bullpen) -> None:
    @pen.job
    async def welcome(ctx: Context) -> None: ...

    await assert_not_queued(pen, welcome)
    await welcome.add()
    await assert_queued(pen, welcome)
    await run_until_empty(pen)
    await assert_not_queued(pen, welcome)


async def test_a_failure_lists_what_is_queued_instead(pen: Bullpen) -> None:
    @pen.job(queue="mail")
    async def welcome(ctx: Context, user_id: int, lang: str = "en") -> None: ...

    with pytest.raises(AssertionError) as nothing:
        await assert_queued(pen, welcome, user_id=43)
    assert str(nothing.value) == "welcome(user_id=43) is not queued; nothing is queued on 'mail'"
    await welcome.options(id="a", delay=60, tenant="acme").add(user_id=42)
    with pytest.raises(AssertionError) as other:
        await assert_queued(pen, welcome.options(delay=30), user_id=42)
    assert str(other.value) == (
        "welcome(user_id=42), delay=30 is not queued; queued are:\n"
        "  mail/a welcome(user_id=42, lang='en') delayed, delay=60, priority=5, tenant='acme'"
    )
    with pytest.raises(AssertionError) as found:
        await assert_not_queued(pen, welcome, user_id=42)
    assert str(found.value).startswith("welcome(user_id=42) should not be queued, but is:\n  mail/a welcome(")


async def test_a_long_list_is_cut(pen: Bullpen) -> None:
    @pen.job
    async def welcome(ctx: Context, n: int) -> None: ...

    for n in range(25):
        await welcome.add(n=n)
    with pytest.raises(AssertionError, match=r"… and 5 more$"):
        await assert_queued(pen, welcome, n=99)


async def test_a_misspelt_argument_is_an_error(pen: Bullpen) -> None:
    """Else `assert_not_queued` would pass for ever."""

    @pen.job
    async def welcome(ctx: Context, user_id: int) -> None: ...

    with pytest.raises(BadData, match="welcome has no argument 'usr_id'; it has user_id"):
        await assert_not_queued(pen, welcome, usr_id=42)


async def test_the_wrong_queue_is_an_error(pen: Bullpen, mail: Queue) -> None:
    @pen.job(queue="calls")
    async def call(ctx: Context) -> None: ...

    with pytest.raises(BadOption, match="wait on queue 'calls', not on 'mail'"):
        await assert_not_queued(mail, call)


async def test_a_payload_that_does_not_fit_is_shown_as_it_is(pen: Bullpen) -> None:
    """Another producer may write anything."""

    @pen.job(queue="mail")
    async def welcome(ctx: Context, user_id: int) -> None: ...

    await pen.open()
    await pen.queue("mail").add("welcome", {"user": "Ada"})
    await pen.queue("mail").add("welcome", "Ada")
    assert [job.arguments for job in await queued(pen, welcome)] == [{"user": "Ada"}, {"data": "Ada"}]
