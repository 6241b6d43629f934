"""`test_context`: calling a job type as the function that it is."""

from typing import assert_type

import pytest

from bullpen import BadData, Bullpen, Context, JobCancelled
from bullpen.testing import test_context

pen = Bullpen("sqlite:never-opened.db")


@pen.job(queue="mail", attempts=5)
async def welcome(ctx: Context, user_id: int) -> str:
    ctx.log(f"to {user_id}")
    ctx.progress({"sent": 1})
    ctx.then(count.prepare(n=user_id))
    return f"{ctx.tenant} {ctx.attempt}"


@pen.job
def count(ctx: Context, n: int) -> int:
    ctx.check_cancelled()
    return n + 1


async def test_an_async_job_type_is_called_directly() -> None:
    context = test_context(attempt=2, tenant="acme")
    result = assert_type(await welcome(context, user_id=42), str)
    assert result == "acme 2"
    assert context.logs == ["to 42"]
    assert context.progress_values == [{"sent": 1}]
    assert [(job.name, job.data) for job in context.follow_ups] == [("count", b'{"n":42}')]


def test_a_plain_job_type_is_called_directly() -> None:
    assert count(test_context(), n=1) == 2


def test_a_handler_sees_that_it_is_to_stop() -> None:
    with pytest.raises(JobCancelled, match="enough"):
        count(test_context(cancel_reason="enough"), n=1)


def test_all_that_a_handler_can_read_can_be_said() -> None:
    context = test_context("welcome", {"user_id": 42}, queue="mail", id="7", attempt=3, headers={"trace": "t"}, epoch=9)
    assert (context.name, context.data, context.id, context.job.queue) == ("welcome", {"user_id": 42}, "7", "mail")
    assert (context.attempt, context.headers, context.epoch) == (3, {"trace": "t"}, 9)
    assert context.job.spec.attempts == 3
    assert not context.cancelled


def test_what_no_store_takes_is_refused_here_too() -> None:
    with pytest.raises(BadData):
        test_context().progress(float("nan"))
    with pytest.raises(ValueError, match="1 for the first try"):
        test_context(attempt=0)
