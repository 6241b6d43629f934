"""An agent that analyses data: it writes a table, adds it up with code in a sandbox, and draws a chart.

    python examples/agents/analysis.py

The model is scripted unless `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` is set. It needs bubblewrap, for the sandbox.
"""

import asyncio

from staffing import TENANT, agents_for, at_work

from bullpen.agents import equipped
from bullpen.agents.llm import CallTurn, Script, Turn
from bullpen.records import FileKind

PROMPT = "Make a table of five cities with invented temperatures, tell me the mean, and draw a bar chart."
TABLE = "city,degrees\nBern,4\nOslo,-3\nRome,14\nCairo,23\nLima,19\n"
CODE = """import csv, statistics
degrees = [int(row["degrees"]) for row in csv.DictReader(open("cities.csv"))]
print(statistics.mean(degrees))
"""
CHART = {
    "kind": "bar",
    "labels": ["Bern", "Oslo", "Rome", "Cairo", "Lima"],
    "series": [{"name": "degrees", "values": [4, -3, 14, 23, 19]}],
}
SCRIPT = Script(
    (
        Turn(text="First the table.", calls=(CallTurn("file_write", {"path": "cities.csv", "text": TABLE}),)),
        Turn(text="Now the mean.", calls=(CallTurn("code_execute", {"code": CODE}),)),
        Turn(text="And a chart.", calls=(CallTurn("generate_image", {"name": "cities.png", "chart": CHART}),)),
        Turn(text="The mean is 11.4 degrees; the chart is in cities.png."),
    )
)


async def main() -> None:
    agents = agents_for(SCRIPT)
    async with equipped(agents), at_work(agents):
        run = await agents.submit(PROMPT, tenant=TENANT, task_type="data_analysis")
        async for event in agents.follow(run.run_id):
            if event.kind in ("tool_completed", "tool_failed"):
                print(f"{event.data['tool_name']}: {event.data['status']}")
        result = await agents.result(run.run_id)
        print(result.output)
        files = (await agents.records()).files
        for made in await files.of_run(run.run_id, kind=FileKind.ARTIFACT):
            print(f"made {made.name}")


if __name__ == "__main__":
    asyncio.run(main())
