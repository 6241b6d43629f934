"""What agent runs cost beside their models: python -m benchmarks.agents [--quick]

On SQLite and, where there are servers, on Redis with PostgreSQL: a step that does nothing, fifty runs at once on one
worker, a submission; and a sandbox from a warm pool. The table goes to stdout, the figures to
`benchmarks/out/agents.json`.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.children import ROOT
from benchmarks.postgres import running_postgres
from benchmarks.redis.server import HOST, running_redis
from benchmarks.sandbox import acquire_ms
from benchmarks.trials import NotMeasured
from bullpen import Bullpen, WorkerOptions
from bullpen.agents.agents import Agents
from bullpen.agents.llm.models import table_of
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.agents.sandbox import BubblewrapDriver, PoolOptions, Registry, SandboxPool
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.records.records import Records
from bullpen.settings import store_from
from bullpen.worker.runner import quick_runner

OUT = ROOT / "benchmarks" / "out"
TENANT = "acme"
RUNS, STEPS = 50, 20
_MODEL = {"provider": "scripted", "context_window": 10**9, "max_output": 4_096, "input": "1", "output": "1"}
MODELS = table_of({"version": "bench", "credits_per_dollar": "1", "models": {"parrot": _MODEL}})


@tool(policy=Policy.READ_ONLY)
async def nothing() -> str:
    """Do nothing."""
    return ""


@dataclass(frozen=True, slots=True)
class Figure:
    measure: str
    place: str
    value: float
    unit: str
    target: str = ""


class Talker:
    """Asks for a tool until the steps that the prompt names are done; notes when it was asked."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []

    def __call__(self, request: Request) -> Turn:
        self.asked_s.append(time.perf_counter())
        turns = int(request.messages[0].text) // 2
        said = len(request.messages) // 2  # each with the tool's answer, after the prompt
        usage = Usage(10, 20)
        if said + 1 >= turns:
            return Turn(text="done", usage=usage)
        return Turn(calls=(CallTurn("nothing", {}, id=f"c{said}"),), usage=usage)


@contextlib.asynccontextmanager
async def places(folder: Path) -> AsyncIterator[dict[str, tuple[str, str]]]:
    """Addresses of stores and records, by name."""
    found = {"SQLite": (f"sqlite:{folder}/queue.db", f"sqlite:{folder}/records.db")}
    async with contextlib.AsyncExitStack() as stack:
        try:
            port = await stack.enter_async_context(running_redis(folder))
            records = await stack.enter_async_context(running_postgres(folder))
            found["Redis, PostgreSQL"] = (f"redis://{HOST}:{port}/0", records)
        except NotMeasured as error:
            print(f"not measured: {error}", file=sys.stderr)
        yield found


async def measure(name: str, store: str, records_address: str, *, quick: bool) -> list[Figure]:
    talker = Talker()
    async with await Records.open(records_address) as records, Bullpen(store_from(store)) as pen:
        agents = Agents(pen, records, providers=[ScriptedProvider(talker)], models=MODELS, tools=[nothing])
        async with agents:
            await agents.deposit(TENANT, 100_000)
            submit_ms = await _submissions(agents, 30 if quick else 200)
            worker = pen.worker(options=WorkerOptions(concurrency=RUNS))
            running = asyncio.create_task(worker.run())
            try:
                turns = 40 if quick else 200
                cpu_s = time.process_time()
                step_ms = await _steps(agents, talker, turns)
                cpu_ms = (time.process_time() - cpu_s) * 1000 / (2 * turns)
                seconds = await _at_once(agents, RUNS // 5 if quick else RUNS)
            finally:
                worker.stop()
                await running
    runs = RUNS // 5 if quick else RUNS
    return [
        Figure("a step that does nothing, p50", name, _quantile(step_ms, 0.5), "ms", "< 3"),
        Figure("a step that does nothing, CPU of the worker", name, cpu_ms, "ms"),
        Figure(f"{runs} runs of {STEPS} steps at once", name, seconds, "s"),
        Figure(f"{runs} runs of {STEPS} steps at once", name, runs * STEPS / seconds, "steps/s"),
        Figure("a submission, p50", name, _quantile(submit_ms, 0.5), "ms"),
        Figure("a submission, p95", name, _quantile(submit_ms, 0.95), "ms", "< 25"),
    ]


async def _submit(agents: Agents, steps: int) -> str:
    sent = await agents.submit(
        str(steps), tenant=TENANT, max_steps=steps, max_tool_calls=steps, max_credits=50, stream=False
    )
    return sent.run_id


async def _submissions(agents: Agents, how_many: int) -> list[float]:
    times = []
    for _ in range(how_many):
        start = time.perf_counter()
        run_id = await _submit(agents, 2)
        times.append((time.perf_counter() - start) * 1000)
        await agents.cancel(run_id)
    return times


async def _steps(agents: Agents, talker: Talker, turns: int) -> list[float]:
    """A turn is two steps: a model is asked, a tool is called; each is a transaction."""
    talker.asked_s.clear()
    result = await agents.result(await _submit(agents, 2 * turns))
    assert result.status == "completed", result
    return [(later - one) * 1000 / 2 for one, later in zip(talker.asked_s, talker.asked_s[1:], strict=False)]


async def _at_once(agents: Agents, runs: int) -> float:
    start = time.perf_counter()
    sent = await asyncio.gather(*(_submit(agents, STEPS) for _ in range(runs)))
    results = await asyncio.gather(*(agents.result(run_id) for run_id in sent))
    assert {result.status for result in results} == {"completed"}
    return time.perf_counter() - start


async def sandboxes(folder: Path, *, quick: bool) -> list[Figure]:
    if shutil.which("bwrap") is None:
        return []
    options = PoolOptions(warm=2, most=4)
    async with SandboxPool(BubblewrapDriver(), options=options, registry=Registry(folder / "sandboxes")) as pool:
        times = await acquire_ms(pool, 10 if quick else 40, 2)
    return [Figure("a sandbox from a warm pool, p95", "bubblewrap", _quantile(times, 0.95), "ms", "< 50")]


def _quantile(times: Sequence[float], part: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def as_table(figures: Sequence[Figure]) -> str:
    lines = ["| measure | place | value | unit | target |", "|---|---|---:|---|---|"]
    lines += [f"| {one.measure} | {one.place} | {one.value:,.2f} | {one.unit} | {one.target} |" for one in figures]
    return "\n".join(lines)


async def main(*, quick: bool) -> None:
    OUT.mkdir(exist_ok=True)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with places(folder) as found:
            for place, (store, records) in found.items():
                figures += await measure(place, store, records, quick=quick)
        figures += await sandboxes(folder, quick=quick)
    print(f"load {os.getloadavg()[0]:.1f}\n\n{as_table(figures)}")
    (OUT / "agents.json").write_text(json.dumps([asdict(one) for one in figures], indent=1) + "\n")


if __name__ == "__main__":
    logging.getLogger("bullpen").setLevel(logging.CRITICAL)  # the submissions are cancelled again, each with a warning
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    with quick_runner() as runner:  # the loop that workers run on
        runner.run(main(quick=parser.parse_args().quick))
