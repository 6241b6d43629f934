"""The agent of the example, whose process may die by itself between an effect and its record.

python -m tests.chaos.agent <probability>
"""

import asyncio
import importlib
import os
import random
import signal
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def main() -> None:
    sys.path.insert(0, str(EXAMPLES))
    agent_loop = importlib.import_module("agent_loop")
    apply = agent_loop.world.apply

    def apply_and_perhaps_die(key: str, tool: str, what: str) -> None:
        apply(key, tool, what)
        if random.random() < float(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)

    agent_loop.world.apply = apply_and_perhaps_die
    asyncio.run(agent_loop.work())


if __name__ == "__main__":
    main()
