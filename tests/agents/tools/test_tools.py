"""Tools from typed functions: what a model is told, what it may send, and how a call ends."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import BaseModel

from bullpen.agents.llm.words import ToolSpec
from bullpen.agents.sandbox.base import Level
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import (
    AgentError,
    BadData,
    BadHandler,
    BadOption,
    IsolationTooWeak,
    SandboxBroken,
    SandboxTimeout,
    ToolError,
    ToolTimeout,
)

CALL = ToolContext(task_id="r1", key="r1/3", tenant="acme")


class Place(msgspec.Struct):
    street: str
    number: int = 1


class Order(BaseModel):
    item: str
    count: int


@tool(policy=Policy.READ_ONLY)
async def weather(city: Annotated[str, "Its name, in English."], days: int = 1, unit: Literal["C", "F"] = "C") -> str:
    """The weather in a city for the next days."""
    return f"{city}: {days} days of sun in {unit}"


@tool
def visit(ctx: ToolContext, places: list[Place]) -> dict[str, Any]:
    """Go to all of these."""
    return {"key": ctx.key, "streets": [place.street for place in places]}


def test_a_model_is_told_what_the_hints_say() -> None:
    assert weather.spec() == ToolSpec(
        "weather",
        "The weather in a city for the next days.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Its name, in English."},
                "days": {"type": "integer"},
                "unit": {"enum": ["C", "F"]},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    )
    assert set(visit.parameters["properties"]) == {"places"}
    assert visit.parameters["$defs"]["Place"]["required"] == ["street"]


async def test_arguments_come_as_their_types_and_defaults_stand() -> None:
    assert await weather.call(CALL, {"city": "Oslo"}) == "Oslo: 1 days of sun in C"
    assert await visit.call(CALL, {"places": [{"street": "Main"}, {"street": "Side", "number": 2}]}) == {
        "key": "r1/3", "streets": ["Main", "Side"]
    }  # fmt: skip


async def test_a_pydantic_model_is_an_argument_too() -> None:
    @tool
    def buy(order: Order) -> str:
        """Buy it."""
        return f"{order.count} of {order.item}"

    assert buy.parameters["properties"]["order"]["required"] == ["item", "count"]
    assert await buy.call(CALL, {"order": {"item": "tea", "count": 2}}) == "2 of tea"
    with pytest.raises(BadData, match="arguments: of 'buy'"):
        buy.check({"order": {"item": "tea", "count": "many"}})


def test_a_hint_that_no_schema_can_say_is_refused() -> None:
    def buy(order: threading.Thread) -> None:
        """Buy it."""

    with pytest.raises(BadHandler, match="no JSON schema"):
        tool(buy)


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({}, "missing required field `city`"),
        ({"city": 7}, r"Expected `str`, got `int` - at `\$.city`"),
        ({"city": "Oslo", "unit": "K"}, r"at `\$.unit`"),
        ({"city": "Oslo", "when": "now"}, "unknown field `when`"),
        ([], "Expected `object`"),
    ],
)
def test_arguments_that_do_not_fit_name_the_field(arguments: Any, told: str) -> None:
    with pytest.raises(BadData, match=f"arguments: of 'weather': .*{told}"):
        weather.check(arguments)


async def test_an_error_of_the_function_is_told_by_its_name() -> None:
    @tool
    async def fail() -> None:
        """Fail."""
        raise LookupError("no such row")

    with pytest.raises(ToolError, match="fail: LookupError: no such row"):
        await fail.call(CALL, {})


@pytest.mark.parametrize("kind", [SandboxBroken, SandboxTimeout, ToolTimeout])
async def test_what_agents_know_by_a_code_of_its_own_stays_that(kind: type[AgentError]) -> None:
    @tool
    async def run() -> None:
        """Run."""
        raise kind("gone")

    with pytest.raises(kind):
        await run.call(CALL, {})


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_takes_too_long_is_over_in_time(*, is_async: bool) -> None:
    end = threading.Event()

    async def wait() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    def block() -> None:
        """Block until the test ends."""
        end.wait(60)

    slow = tool(timeout=0.05)(wait if is_async else block)
    try:
        with pytest.raises(ToolTimeout, match=r"took longer than 0\.05 s"):
            await slow.call(CALL, {})
    finally:
        end.set()


async def test_a_time_out_of_its_own_is_its_error_not_ours() -> None:
    @tool
    async def ask() -> None:
        """Ask somebody."""
        raise TimeoutError("nobody answered")

    with pytest.raises(ToolError, match="ask: nobody answered") as raised:
        await ask.call(CALL, {})
    assert not isinstance(raised.value, ToolTimeout)


async def test_a_result_that_json_cannot_carry_is_refused() -> None:
    @tool
    async def make() -> object:
        """Make something."""
        return object()

    with pytest.raises(BadData, match="result of make"):
        await make.call(CALL, {})


def _no_words() -> None: ...


def _no_hint(city) -> None:  # type: ignore[no-untyped-def]
    """Where."""


def _many(*cities: str) -> None:
    """Where."""


def _worded() -> None:
    """Do it."""


async def _look_up(_: ToolContext, __: Mapping[str, Any]) -> None: ...


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: tool(_no_words), "needs a description"),
        (lambda: tool(_no_hint), "city has no type hint"),
        (lambda: tool(_many), r"\*cities has no place"),
        (lambda: tool(timeout=0)(_worded), "timeout: more than 0"),
        (lambda: tool(price=-1)(_worded), "price: 0 or more"),
        (lambda: tool(policy=Policy.RECONCILE)(_worded), "reconcile: a function goes with"),
        (lambda: tool(reconcile=_look_up)(_worded), "reconcile: a function goes with"),
    ],
)
def test_what_is_no_tool_is_refused_when_it_is_made(make: Callable[[], Tool], told: str) -> None:
    with pytest.raises(BadHandler, match=told):
        make()


def test_nothing_is_called_twice_unless_it_is_said_to_be_safe() -> None:
    assert visit.policy == Policy.ONCE


def test_a_toolbox_has_what_is_allowed() -> None:
    box = Toolbox([weather, visit])
    assert [spec.name for spec in box.allowed(["visit", "visit"]).specs()] == ["visit"]
    assert len(box.allowed(None)) == 2
    with pytest.raises(BadOption, match="tools: there is none of the name 'fly'; there are visit, weather"):
        box.allowed(["fly"])
    with pytest.raises(BadOption, match="two of the name 'weather'"):
        Toolbox([weather, tool(name="weather")(_worded)])


def test_a_tool_that_is_not_allowed_looks_like_one_that_is_not_there() -> None:
    box = Toolbox([weather, visit]).allowed(["weather"])
    told = []
    for name in ("visit", "fly"):
        with pytest.raises(ToolError) as raised:
            box.find(name)
        told.append(str(raised.value).replace(name, "…"))
    assert told[0] == told[1] == "there is no tool '…' here; you may use: weather"
    assert box.find("weather") is weather


def test_a_tool_is_refused_behind_walls_that_are_too_weak() -> None:
    box = Toolbox([weather, tool(name="shell", isolation=Level.NAMESPACE)(_worded)])
    box.check_isolation(Level.NAMESPACE)
    with pytest.raises(IsolationTooWeak, match="the tool 'shell' needs namespace isolation, and has process"):
        box.check_isolation(Level.PROCESS)


async def test_a_run_without_a_sandbox_says_so() -> None:
    with pytest.raises(ToolError, match="no sandbox"):
        await CALL.needs_sandbox()
