"""An agent that tests its own code: it writes a function and a test, sees the test fail, and mends the function.

    python examples/agents/self_testing.py

The model is scripted unless `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` is set. It needs bubblewrap, for the sandbox.
"""

import asyncio

from staffing import TENANT, agents_for, at_work

from bullpen.agents import equipped
from bullpen.agents.llm import CallTurn, Script, Turn

PROMPT = "Write leap(year) in leap.py with a test in test_leap.py. Run the test, and go on until it passes."
WRONG = "def leap(year):\n    return year % 4 == 0\n"
RIGHT = "def leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n"
TEST = "from leap import leap\n\nassert leap(2024)\nassert not leap(1900), '1900 was none'\nassert leap(2000)\n"
RUN = CallTurn("shell_execute", {"command": "python3 test_leap.py && echo passed"})
SCRIPT = Script(
    (
        Turn(
            text="A first try, and its test.",
            calls=(
                CallTurn("file_write", {"path": "leap.py", "text": WRONG}),
                CallTurn("file_write", {"path": "test_leap.py", "text": TEST}),
            ),
        ),
        Turn(text="Does it hold?", calls=(RUN,)),
        Turn(text="1900 was no leap year.", calls=(CallTurn("file_write", {"path": "leap.py", "text": RIGHT}),)),
        Turn(text="Once more.", calls=(RUN,)),
        Turn(text="The test passes: centuries count only every fourth time."),
    )
)


async def main() -> None:
    agents = agents_for(SCRIPT)
    async with equipped(agents), at_work(agents):
        tools = ("file_write", "file_read", "shell_execute")
        run = await agents.submit(PROMPT, tenant=TENANT, tools=tools)
        async for event in agents.follow(run.run_id):
            if event.kind == "tool_completed" and event.data["tool_name"] == "shell_execute":
                print("the test", "passes" if "passed" in event.data["tool_output"] else "fails")
        print((await agents.result(run.run_id)).output)


if __name__ == "__main__":
    asyncio.run(main())
