"""What a step costs does not grow with the run: counted in statements and bytes of the records, and in the bytes of
the conversation that are measured for the most it may cost; not in time.

200 steps here, 10,000 by `make soak`. The conversation itself is sent to the model again with each step: that is the
model's price, not the journal's.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.llm import words
from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.records.prepared import Prepared
from bullpen.records.records import Records
from tests.agents.runs.conftest import TENANT, Making, working

_WIDE: ModelTable = table_of(
    {
        "version": "test",
        "credits_per_dollar": "1",
        "models": {
            "parrot": {
                "provider": "scripted", "context_window": 10**9, "max_output": 4_096, "input": "1", "output": "1",
            }
        },
    }
)  # fmt: skip
_WINDOW = 25
"""Turns at each end that are compared."""
_ALLOWED = 1.5


@tool(policy=Policy.READ_ONLY)
async def look() -> str:
    """Look."""
    return "seen"


class Cost(NamedTuple):
    statements: float
    stored: float
    """Bytes of their values."""
    measured: float
    """Bytes of messages and tools."""


class Meter:
    """What was sent to the database, and what was measured, at each turn of the model."""

    def __init__(self, records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
        self._statements = self._stored = self._measured = 0
        self.turns: list[Cost] = []
        event.listen(records.database.engine.sync_engine, "before_cursor_execute", self._count)
        self._count_prepared(monkeypatch)
        self._count_measured(monkeypatch)

    def mark(self) -> None:
        self.turns.append(Cost(self._statements, self._stored, self._measured))

    def cost_of(self, first: int, last: int) -> Cost:
        """Of each of these turns, on average."""
        pairs = zip(self.turns[first], self.turns[last], strict=True)
        return Cost(*((later - before) / (last - first) for before, later in pairs))

    def _count_measured(self, monkeypatch: pytest.MonkeyPatch) -> None:
        encode = words._encode

        def counted(said: object) -> bytes:
            found = encode(said)
            self._measured += len(found)
            return found

        monkeypatch.setattr(words, "_encode", counted)

    def _count_prepared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Those that pass SQLAlchemy by."""
        fetch, run = Prepared.fetch, Prepared.run

        async def counted_fetch(self_: Prepared, connection: AsyncConnection, values: Mapping[str, Any]) -> Any:
            self._add([values])
            return await fetch(self_, connection, values)

        async def counted_run(self_: Prepared, connection: AsyncConnection, rows: Iterable[Mapping[str, Any]]) -> None:
            given = list(rows)
            self._add(given)
            await run(self_, connection, given)

        monkeypatch.setattr(Prepared, "fetch", counted_fetch)
        monkeypatch.setattr(Prepared, "run", counted_run)

    def _count(self, _: Connection, __: object, statement: str, values: object, ___: object, is_many: bool) -> None:
        # What the relay, the rescuer and whoever follows the run ask meanwhile is no step's cost.
        if statement.startswith(("BEGIN", "SELECT")) or "bullpen_outbox" in statement:
            return
        self._add(values if is_many and isinstance(values, list | tuple) else [values])

    def _add(self, rows: Iterable[object]) -> None:
        self._statements += 1
        self._stored += sum(map(_size, rows))


def _size(value: object) -> int:
    match value:
        case str() | bytes():
            return len(value)
        case dict():
            return sum(map(_size, value.values()))
        case list() | tuple():
            return sum(map(_size, value))
        case _:
            return 8


@pytest.fixture
def meter(records: Records, monkeypatch: pytest.MonkeyPatch) -> Meter:
    return Meter(records, monkeypatch)


async def _grow(agents_with: Making, records: Records, meter: Meter, steps: int) -> None:
    turns = steps // 2

    def talks(_: Request) -> Turn:
        meter.mark()
        n = len(meter.turns)
        if n == turns:
            return Turn(text="done", usage=Usage(10, 20))
        return Turn(calls=(CallTurn("look", {}, id=f"c{n:06}"),), usage=Usage(10, 20))

    async with agents_with(talks, [look], deposit=100_000, models=_WIDE) as agents, working(agents):
        sent = await agents.submit(
            "go", tenant=TENANT, max_steps=turns, max_tool_calls=turns, max_credits=100_000, stream=False
        )
        result = await agents.result(sent.run_id, timeout=3_000)
    assert (result.status, result.llm_calls_made, result.tool_calls_made) == ("completed", turns, turns - 1)
    first, last = meter.cost_of(0, _WINDOW), meter.cost_of(turns - 1 - _WINDOW, turns - 1)
    print(f"{steps:,} steps: {first} a turn at the start, {last} at the end")
    for before, later in zip(first, last, strict=True):
        assert 0 < later <= _ALLOWED * before
    assert (await records.credits.balance(TENANT)).held == 0
    assert await records.credits.unbalanced() == []


async def test_a_submission_writes_each_row_once(agents_with: Making, records: Records, meter: Meter) -> None:
    """Run, task, words, account, hold, the sums of both accounts, the job; on SQLite each booking is a statement."""
    async with agents_with(lambda _: "done", [look], deposit=100) as agents:
        meter.mark()
        sent = await agents.submit("go", tenant=TENANT)
        meter.mark()
        assert meter.cost_of(0, 1).statements <= (8 if records.database.is_postgres else 11)  # one reads the budgets
        assert (await agents.run(sent.run_id)).state == (await agents.tasks(sent.run_id))[0].state == "queued"
    assert await records.credits.unbalanced() == []


@pytest.mark.parametrize("kinds", ["sqlite"], indirect=True)  # the servers' turn is with the long run
async def test_two_hundred_steps(agents_with: Making, records: Records, meter: Meter) -> None:
    await _grow(agents_with, records, meter, 200)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
async def test_ten_thousand_steps(agents_with: Making, records: Records, meter: Meter) -> None:
    await _grow(agents_with, records, meter, 10_000)
