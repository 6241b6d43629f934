"""Wide research: one agent plans questions, others search a folder of notes side by side, and it joins what they found.

    python examples/agents/research.py

The model is scripted unless `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` is set.
"""

import asyncio

from staffing import FOLDER, TENANT, agents_for, at_work

from bullpen.agents import FolderSearch, TaskRequest, web_search
from bullpen.agents.llm import CallTurn, Request, Role, Turn

NOTES = {
    "lamp.md": "# Lamp\n\nThe lamp needs 5 watts and lasts ten years.",
    "desk.md": "# Desk\n\nThe desk is made of oak and carries 80 kilograms.",
    "rug.md": "# Rug\n\nThe rug is wool, and must not be washed.",
}


def says(request: Request) -> Turn:
    """Plans, searches for the first word of its question, tells what it found, and joins."""
    last = request.messages[-1]
    if request.tools and request.tools[0].name == "research":
        return Turn(calls=(CallTurn("research", {"questions": ["lamp", "desk", "rug"]}),))
    if last.role is Role.TOOL:
        return Turn(text=f"I found: {last.results[0].text}")
    if "# What was found" in last.text:
        found = last.text.count("I found")
        return Turn(text=f"Three products, {found} of them described in the notes.")
    return Turn(calls=(CallTurn("web_search", {"query": last.text.split()[0]}),))


async def main() -> None:
    notes = FOLDER / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    for name, text in NOTES.items():
        (notes / name).write_text(text, "utf-8")
    agents = agents_for(says, [web_search(FolderSearch(notes))])
    async with at_work(agents):
        asked = TaskRequest(prompt="What do our notes say about the products?", task_type="wide_research", width=3)
        run = await agents.submit(asked, tenant=TENANT)
        result = await agents.result(run.run_id, timeout=120)
        print(f"{len(await agents.tasks(run.run_id))} tasks: {result.output}")


if __name__ == "__main__":
    asyncio.run(main())
