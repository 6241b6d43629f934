"""Has a run's charts drawn, in an environment of their own: Bullpen's has no use for matplotlib."""

import sys
from pathlib import Path

from benchmarks.children import ChildFailed, ask
from benchmarks.peers.environments import NotInstalled, PythonEnvironment, made

_ENVIRONMENT = PythonEnvironment("charts", ("matplotlib==3.*",), "benchmarks.charting")


async def draw(figures: Path, folder: Path) -> list[str]:
    """The names of PNG files of what a run found; a run without charts is still a run."""
    command = await made(_ENVIRONMENT)
    if isinstance(command, NotInstalled):
        print(f"no charts: {command}", file=sys.stderr)
        return []
    try:
        answer = await ask(*command, figures, folder)
    except ChildFailed as error:
        print(f"no charts: {error}", file=sys.stderr)
        return []
    drawn: list[str] = answer["drawn"]
    print(f"charts: {', '.join(drawn)} in {folder}", file=sys.stderr)
    return drawn
