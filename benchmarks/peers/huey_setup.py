"""Installs huey into an environment of its own, once, and asks its driver for figures."""

import asyncio
import subprocess
import sys
from pathlib import Path

from benchmarks.children import Answer, ask

_DRIVER = Path(__file__).with_name("huey_peer.py")
_REQUIREMENT = "huey>=3,<4"
_LONGEST_S = 180


class NotInstalled(Exception):
    """There is no environment with this peer, and none could be made."""


class Huey:
    def __init__(self, python: Path, version: str) -> None:
        self._python = python
        self.version = version

    async def ask(self, role: str, path: Path, how_many: int) -> Answer:
        return await ask(self._python, _DRIVER, role, path, str(how_many))


async def install(folder: Path) -> Huey:
    """Huey, ready to run. Raises NotInstalled with the reason."""
    try:
        return await asyncio.to_thread(_install, folder)
    except (OSError, subprocess.SubprocessError) as error:
        print(getattr(error, "stderr", None) or error, file=sys.stderr)
        raise NotInstalled("installing failed") from error


def _install(folder: Path) -> Huey:
    python = folder / "bin" / "python"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(folder))
    if not _version(python):
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", _REQUIREMENT)
    return Huey(python, _version(python))


def _version(python: Path) -> str:
    try:
        return _run(str(python), "-c", "from importlib.metadata import version; print(version('huey'))").strip()
    except subprocess.CalledProcessError:
        return ""


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LONGEST_S).stdout
