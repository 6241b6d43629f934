"""Runs of agents for the pictures: done, under way, with a question, cancelled; a script speaks for the model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bullpen import Bullpen, WorkerOptions
from bullpen.agents.agents import Agents
from bullpen.agents.llm.models import table_of
from bullpen.agents.llm.scripted import CallTurn, Fault, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext
from bullpen.agents.words import TaskRequest
from bullpen.records.runs.words import ProgressKind

_TENANT = "default"
_MODELS = table_of(
    {
        "version": "demo",
        "models": {
            "sonata-4": {
                "provider": "scripted",
                "context_window": 200_000,
                "max_output": 8_192,
                "input": "3",
                "output": "15",
            }
        },
    }
)
_REPORT = "Compare the three suppliers by price and delivery time, and say whom we should order from."
_REFUND = "Refund order 4711, and write the customer a short note."
_CHART = "Draw a chart of the sales of each month, and give me the numbers."
_RESEARCH = "What do our three largest competitors charge, and what do their customers complain about?"
_QUESTIONS = (
    "What does Nordwind charge?",
    "What does Fuchs & Sons charge?",
    "What do customers of both complain about?",
)
_DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40"><path d="M0 40L30 12L60 25L90 3"/></svg>'
_LETTER = "Write a letter to all customers about the new opening hours."
_SLOW_S = 0.7
_LONG = (
    "Dear customers,\n\nfrom the first of next month we open an hour earlier on weekdays, and on Saturdays we stay "
    "until six. Many of you asked for it, and we are glad that it works out at last. "
) + " ".join(f"Counter {n} is there for you from then on as well." for n in range(2, 40))


@asynccontextmanager
async def runs_in(folder: Path) -> AsyncIterator[dict[str, str]]:
    """The server of this folder has runs as long as the block lasts: where each kind is."""
    async with Bullpen(f"sqlite:{folder / 'queue.db'}") as pen:
        agents = Agents(pen, f"sqlite:{folder / 'records.db'}", providers=[ScriptedProvider(_answer)], models=_MODELS)
        agents.tool(policy=Policy.READ_ONLY)(look_up_prices)
        agents.tool(policy=Policy.READ_ONLY)(draw_chart)
        agents.tool(policy=Policy.ONCE)(refund)
        async with agents:
            await agents.deposit(_TENANT, 500)
            asking = await _asking(agents)
            async with _working(agents):
                done = await _done(agents, _REPORT)
                for prompt in ("Sum up yesterday's tickets.", "Translate the manual's first page into French."):
                    await _done(agents, prompt)
                made = await _done(agents, _CHART)
                research = await _done(agents, TaskRequest(prompt=_RESEARCH, task_type="wide_research"))
                stopped = await agents.submit(_LETTER, tenant=_TENANT, created_by="max")
                live = await agents.submit(_LETTER, tenant=_TENANT, created_by="ann")
                await agents.cancel(stopped.run_id)
                yield {
                    "{run}": f"/runs/{done}",
                    "{run-live}": f"/runs/{live.run_id}",
                    "{run-asking}": f"/runs/{asking}",
                    "{run-made}": f"/runs/{made}",
                    "{run-research}": f"/runs/{research}",
                    "{replay}": f"/runs/{done}/replay?at=3",
                    "{compare}": f"/runs/{done}/compare?with={await _forked(agents, done)}",
                }


async def _done(agents: Agents, request: TaskRequest | str) -> str:
    sent = await agents.submit(request, tenant=_TENANT, created_by="ann")
    await agents.result(sent.run_id)
    return sent.run_id


async def _forked(agents: Agents, run_id: str) -> str:
    """From the beginning, with another prompt."""
    [task] = await agents.tasks(run_id)
    fork = await agents.fork(task.id, at=0, prompt=f"{task.prompt} Be brief.", created_by="ann")
    await agents.result(fork.run_id)
    return fork.run_id


async def _asking(agents: Agents) -> str:
    """Its worker goes away in the midst of a call that must not be made twice."""
    sent = await agents.submit(_REFUND, tenant=_TENANT, created_by="max")
    async with _working(agents):
        async for event in agents.follow(sent.run_id):
            if event.kind is ProgressKind.TOOL_STARTED:
                break
    return sent.run_id


@asynccontextmanager
async def _working(agents: Agents) -> AsyncIterator[None]:
    worker = agents.pen.worker(options=WorkerOptions(grace=0.1))
    running = asyncio.create_task(worker.run())  # awaited below
    try:
        yield
    finally:
        worker.stop()
        await running


def _answer(request: Request) -> Turn:
    prompt = next(message.text for message in request.messages if message.role is Role.USER)
    results = [result for message in request.messages for result in message.results]
    if any(tool.name == "research" for tool in request.tools):
        return Turn(text="Three questions.", calls=(CallTurn("research", {"questions": list(_QUESTIONS)}),))
    if "# What was found" in prompt:
        return Turn(text="Nordwind is the cheapest, and its customers complain the most.", usage=Usage(1_900, 310))
    if prompt.startswith(_QUESTIONS[2]):
        return Turn(error=Fault("content-refused"))
    if prompt == _CHART and not results:
        return Turn(text="I draw it first.", calls=(CallTurn("draw_chart", {}),), usage=Usage(640, 90))
    if prompt == _LETTER:
        return Turn(text=_LONG, chunk=14, delay=_SLOW_S, usage=Usage(420, 900))
    if prompt == _REFUND and not results:
        return Turn(text="I refund the order first.", calls=(CallTurn("refund", {"order": 4711, "cents": 5990}),))
    if prompt == _REPORT and not results:
        names = ("Nordwind", "Fuchs & Sons", "Atlantis Trading")
        calls = tuple(CallTurn("look_up_prices", {"supplier": name}) for name in names)
        return Turn(text="I look up what each of them asks for.", calls=calls, usage=Usage(1_240, 160))
    if prompt == _REPORT:
        text = "Order from Nordwind: 4 % above the cheapest offer, but two weeks sooner. Atlantis Trading has no offer."
        return Turn(text=text, usage=Usage(2_110, 240))
    return Turn(text="Here it is, in three sentences.", usage=Usage(800, 120))


async def look_up_prices(supplier: str) -> dict[str, object]:
    """What a supplier asks for, and how soon it delivers."""
    if supplier.startswith("Atlantis"):
        raise LookupError("no supplier of this name")
    return {"supplier": supplier, "price": 18_400 if supplier == "Nordwind" else 17_690, "days": 9}


async def draw_chart(ctx: ToolContext) -> str:
    """A chart of the sales of each month, and its numbers."""
    await ctx.keep_file("sales.svg", _DRAWING, mime="image/svg+xml")
    return await ctx.keep_file("sales.csv", b"april,5\nmay,7\n", mime="text/csv")


async def refund(order: int, cents: int) -> str:
    """Pays an order back, which must not happen twice."""
    await asyncio.Event().wait()
    return f"{order} {cents}"
