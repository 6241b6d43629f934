"""A run that is asked for twice under one key is one run, whoever dies between."""

import asyncio
from typing import Any

import pytest

from bullpen.agents.agents import Agents
from bullpen.agents.llm.prices import micro
from bullpen.agents.llm.words import user
from bullpen.agents.sandbox.asking import SandboxAsked
from bullpen.agents.submitting import key_of
from bullpen.agents.words import TaskRequest
from bullpen.errors import BadOption, CreditsShort, IdempotencyConflict
from bullpen.records.records import Records
from bullpen.records.runs.keys import RunKey
from tests.agents.runs.conftest import TENANT, Making, says, working

_PATIENCE_S = 60
_ESTIMATE = micro(11)


class _Killed(BaseException):
    pass


async def _held(records: Records) -> int:
    return (await records.credits.balance(TENANT)).held


async def test_who_died_after_the_commit_finds_the_run_again(
    agents_with: Making, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_: Agents) -> None:
        raise _Killed

    async with agents_with(says("hello")) as agents:
        with monkeypatch.context() as patched:
            patched.setattr(Agents, "_sent_some", die)
            with pytest.raises(_Killed):
                await agents.submit("go", tenant=TENANT, idempotency_key="k1")
    # Nobody was answered; another process is asked.
    async with agents_with(says("hello"), deposit=0) as agents:
        sent = await agents.submit("go", tenant=TENANT, idempotency_key="k1")
        assert sent.state == "queued"
        assert await _held(records) == _ESTIMATE
        assert [run.id for run in (await records.runs.page(tenant=TENANT)).runs] == [sent.run_id]
        async with working(agents):
            assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "hello"
        again = await agents.submit("go", tenant=TENANT, idempotency_key="k1")
        assert (again.run_id, again.task_id, again.state) == (sent.run_id, sent.task_id, "completed")
    assert await records.credits.unbalanced() == []


async def test_all_who_ask_at_once_get_the_same_run(agents_with: Making, records: Records) -> None:
    """Also with credits for one only."""
    async with agents_with(says("hello"), deposit=11) as agents:
        asking = (agents.submit("go", tenant=TENANT, idempotency_key="k1") for _ in range(8))
        sent = await asyncio.gather(*asking)
        assert len({one.run_id for one in sent}) == 1
        assert await _held(records) == _ESTIMATE
        with pytest.raises(CreditsShort):
            await agents.submit("go", tenant=TENANT, idempotency_key="k2")


class _Later(TaskRequest, frozen=True, kw_only=True):
    """As a version will know it that comes after this one."""

    mood: str = "calm"


@pytest.mark.parametrize(
    "told", [{}, {"max_steps": 7}, {"history": (user("before"),), "sandbox": SandboxAsked(memory_mb=64)}], ids=str
)
def test_a_field_that_a_later_version_knows_makes_it_no_other_request(told: dict[str, Any]) -> None:
    """Else a key from before an upgrade would refuse the very request that it stands for."""

    def key(request: TaskRequest) -> RunKey:
        return key_of(request, "k1", tenant=TENANT, created_by="ann")

    now = key(TaskRequest(prompt="go", **told))
    assert key(_Later(prompt="go", **told)) == now
    assert key(TaskRequest(prompt="go", stream=True, metadata={}, **told)) == now
    assert key(_Later(prompt="go", mood="wild", **told)) != now
    assert key(TaskRequest(prompt="go", **told | {"width": 6})) != now


async def test_another_request_under_the_same_key_is_refused(agents_with: Making, records: Records) -> None:
    async with agents_with(says("hello")) as agents:
        first = await agents.submit("go", tenant=TENANT, idempotency_key="k1")
        with pytest.raises(IdempotencyConflict):
            await agents.submit("stay", tenant=TENANT, idempotency_key="k1")
        with pytest.raises(BadOption, match="idempotency_key"):
            await agents.submit("go", tenant=TENANT, idempotency_key="")
        others = await agents.submit("stay", tenant=TENANT, created_by="another", idempotency_key="k1")
        assert others.run_id != first.run_id
        assert await _held(records) == 2 * _ESTIMATE
