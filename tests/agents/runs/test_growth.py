"""What a step costs the records does not grow with the run: counted in statements and bytes, not in time.

200 steps here, 10,000 by `make soak`. The conversation itself is sent to the model again with each step: that is the
model's price, not the journal's.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

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


class Meter:
    """Statements that a database was sent, and the bytes of their values, at each turn of the model."""

    def __init__(self, records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
        self._statements = self._bytes = 0
        self.turns: list[tuple[int, int]] = []
        event.listen(records.database.engine.sync_engine, "before_cursor_execute", self._count)
        self._count_prepared(monkeypatch)

    def mark(self) -> None:
        self.turns.append((self._statements, self._bytes))

    def cost_of(self, first: int, last: int) -> tuple[float, float]:
        """Statements and bytes of each of these turns, on average."""
        (statements, size), (later_statements, later_size) = self.turns[first], self.turns[last]
        return (later_statements - statements) / (last - first), (later_size - size) / (last - first)

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
        if statement.startswith("SELECT") or "bullpen_outbox" in statement:
            return
        self._add(values if is_many and isinstance(values, list | tuple) else [values])

    def _add(self, rows: Iterable[object]) -> None:
        self._statements += 1
        self._bytes += sum(map(_size, rows))


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
    print(f"{steps:,} steps: {first} statements and bytes a turn at the start, {last} at the end")
    assert first[0] > 0
    assert last[0] <= _ALLOWED * first[0]
    assert last[1] <= _ALLOWED * first[1]
    assert (await records.credits.balance(TENANT)).held == 0
    assert await records.credits.unbalanced() == []


@pytest.mark.parametrize("kinds", ["sqlite"], indirect=True)  # the servers' turn is with the long run
async def test_two_hundred_steps(agents_with: Making, records: Records, meter: Meter) -> None:
    await _grow(agents_with, records, meter, 200)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
async def test_ten_thousand_steps(agents_with: Making, records: Records, meter: Meter) -> None:
    await _grow(agents_with, records, meter, 10_000)
