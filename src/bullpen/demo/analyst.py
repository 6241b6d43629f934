"""An agent of the shop: it makes up sales, looks at them with code of its own, draws a chart and says what it sees.

Its model is scripted, so that it needs no account; with `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` a real one is asked.
"""

import asyncio
import itertools

from bullpen.agents.agents import Agents
from bullpen.agents.equipping import equipped
from bullpen.agents.llm.environment import providers_from
from bullpen.agents.llm.models import ModelTable, models_from, table_of
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role
from bullpen.demo.shop import TENANTS, Shop

_FIRST_S = 2
_EVERY_S = 45
_CREDITS = 2_000
_WHO_TRIES_IT = "default"
"""Whom a run is for that somebody asks for in the dashboard without naming a tenant."""
_MODEL = "analyst"
_TOOLS = ("file_write", "code_execute", "generate_image")
_PROMPT = "Which of our five products sells best this {}? Make up plausible sales, add them up, and draw a chart."
_SYSTEM = "You are the analyst of a small shop. Work in steps: write data to a file, run code on it, draw a chart."
_SPANS = ("week", "month", "quarter", "year")
_CHUNK, _DELAY_S = 6, 0.03
_SALES = """product,units
lamp,{0}
chair,{1}
desk,{2}
shelf,{3}
rug,{4}
"""
_CODE = """import csv
sales = {row["product"]: int(row["units"]) for row in csv.DictReader(open("sales.csv"))}
best = max(sales, key=sales.get)
print(f"total {sum(sales.values())}, best {best} with {sales[best]}")
"""


class Analyst:
    """Asks for an analysis now and then, for as long as a block lasts."""

    def __init__(self, shop: Shop, records: str) -> None:
        providers = providers_from()
        self.agents = Agents(
            shop.pen,
            records,
            providers=providers or [ScriptedProvider(_says)],
            models=models_from() if providers else _table(),
        )

    async def be_asked(self) -> None:
        """Equipped, and with credits to spend, until cancelled."""
        async with equipped(self.agents):
            for tenant in (*TENANTS, _WHO_TRIES_IT):
                await self.agents.deposit(tenant, _CREDITS, key="the demo begins")
            await asyncio.sleep(_FIRST_S)
            for span, tenant in zip(itertools.cycle(_SPANS), itertools.cycle(TENANTS), strict=False):
                await self._ask(span, tenant)
                await asyncio.sleep(_EVERY_S)

    async def _ask(self, span: str, tenant: str) -> None:
        there = {tool.name for tool in self.agents.tools}
        tools = [name for name in _TOOLS if name in there]
        await self.agents.submit(_PROMPT.format(span), tenant=tenant, created_by="demo", system=_SYSTEM, tools=tools)


def _table() -> ModelTable:
    price = {"input": "2.5", "output": "10"}
    model = {"provider": "scripted", "context_window": 128_000, "max_output": 4_096, **price}
    return table_of({"version": "demo", "models": {_MODEL: model}})


def _says(request: Request) -> Turn:
    """The next of its five turns, by how many it has had."""
    turn = sum(message.role is Role.ASSISTANT for message in request.messages)
    prompt = next(message.text for message in request.messages if message.role is Role.USER)
    units = [17 + 13 * (len(prompt) * n % 11) for n in range(1, 6)]
    products = ("lamp", "chair", "desk", "shelf", "rug")
    best = products[units.index(max(units))]
    match turn:
        case 0:
            call = CallTurn("file_write", {"path": "sales.csv", "text": _SALES.format(*units)})
            return _turn("I begin with the figures: one row for each product, in sales.csv.", call)
        case 1:
            call = CallTurn("code_execute", {"language": "python", "code": _CODE})
            return _turn("Now a few lines of Python add them up, in the sandbox.", call)
        case 2:
            data = {"labels": list(products), "series": [{"name": "units", "values": units}]}
            call = CallTurn("generate_image", {"name": "sales.png", "chart": {"kind": "bar", **data}})
            return _turn("A chart says more than five numbers.", call)
        case _:
            return _turn(
                f"The {best} sells best: {max(units)} of {sum(units)} pieces. The chart is in `sales.png`, the figures"
                " behind it are in `sales.csv`. I would put it in the window."
            )


def _turn(text: str, *calls: CallTurn) -> Turn:
    return Turn(text=text, calls=calls, chunk=_CHUNK, delay=_DELAY_S)
