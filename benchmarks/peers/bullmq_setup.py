"""Finds or installs the two BullMQs, each with the command that drives it; only the port is left to be said."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.children import ROOT
from benchmarks.peers.huey_setup import NotInstalled

Command = list[str | Path]

_HERE = Path(__file__).parent
_INTEROP = ROOT / "tests" / "interop"
_NAMES = ("bullmq6", "bullmq")
_MAJOR = "6"
_PYPI = ("bullmq>=3,<4", "hiredis", "uvloop")
_LONGEST_S = 180


async def find_node(folder: Path) -> Command:
    """BullMQ of Node: that of the interop tests, else one installed into this folder. Raises NotInstalled."""
    return await _made(_node, folder)


async def find_pypi(folder: Path) -> Command:
    """That of PyPI, in an environment of its own. Raises NotInstalled."""
    return await _made(_pypi, folder)


async def _made(make: Callable[[Path], Command], folder: Path) -> Command:
    try:
        return await asyncio.to_thread(make, folder)
    except (OSError, subprocess.SubprocessError) as error:
        print(getattr(error, "stderr", None) or error, file=sys.stderr)
        raise NotInstalled("installing failed") from error


def _node(folder: Path) -> Command:
    program = shutil.which("node")
    if program is None:
        raise NotInstalled("Node is not installed")
    package = _package(_INTEROP) or _package(folder)
    if package is None:
        folder.mkdir(parents=True, exist_ok=True)
        _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), f"bullmq@{_MAJOR}")
        package = _package(folder)
    if package is None:
        raise NotInstalled("installing failed")
    return [program, _HERE / "bullmq_node.mjs", package]


def _package(folder: Path) -> Path | None:
    """BullMQ of the right version, under whichever name it is installed there."""
    for name in _NAMES:
        package = folder / "node_modules" / name
        about = package / "package.json"
        if about.exists() and str(json.loads(about.read_text())["version"]).startswith(f"{_MAJOR}."):
            return package
    return None


def _pypi(folder: Path) -> Command:
    python = folder / "bin" / "python"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(folder))
    if not _imports(python):
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_PYPI)
    return [python, _HERE / "bullmq_pypi.py"]


def _imports(python: Path) -> bool:
    return (
        subprocess.run([python, "-c", "import bullmq, hiredis, uvloop"], capture_output=True, check=False).returncode
        == 0
    )


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LONGEST_S)
