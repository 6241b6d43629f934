"""What calls of tools cost by the table of models, whatever they say themselves."""

from decimal import Decimal

import msgspec

from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.records.credits.budget import account_of
from bullpen.records.credits.words import EntryKind
from tests.agents.runs.conftest import TENANT, Making, working
from tests.agents.runs.models import MODELS, TOKEN

_PATIENCE_S = 60


@tool(policy=Policy.READ_ONLY)
async def listed() -> str:
    """Has a price in the table."""
    return "ok"


@tool(policy=Policy.READ_ONLY, price=7)
async def unlisted() -> str:
    """Has one of its own."""
    return "ok"


def _calls_both(request: Request) -> Turn:
    if request.messages[-1].role is Role.TOOL:
        return Turn(text="done", usage=Usage(10, 20))
    return Turn(calls=(CallTurn("listed", {}, id="1"), CallTurn("unlisted", {}, id="2")), usage=Usage(10, 20))


async def test_a_call_of_a_tool_costs_what_the_table_says(agents_with: Making) -> None:
    models = msgspec.structs.replace(MODELS, version="test-2", tools={"listed": Decimal("0.001")})
    async with agents_with(_calls_both, [listed, unlisted], models=models) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.credits_charged == 2 * 30 * TOKEN + 100_000 + 7
        statement = await (await agents.records()).credits.statement(TENANT, account_of(sent.task_id))
        charged = {entry.memo: abs(entry.amount) for entry in statement.entries if entry.kind is EntryKind.CHARGE}
        assert charged["listed at prices test-2"] == 100_000
        assert charged["unlisted"] == 7
