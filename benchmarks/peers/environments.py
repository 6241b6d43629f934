"""Each peer in an environment of its own, made once and kept: nothing of theirs meets anything of ours."""

import asyncio
import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from benchmarks.children import ROOT

Command = list[str | Path]

FOLDER = ROOT / "benchmarks" / "out" / "peers"
_DRIVERS = Path(__file__).parent / "drivers"
_INTEROP = ROOT / "tests" / "interop"
_NODE_MAJOR = "6"
_LONGEST_S = 300


class NotInstalled(Exception):
    """There is no environment with this peer, and none could be made."""


@dataclasses.dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """The packages of one peer, and the module that drives it."""

    name: str
    packages: Sequence[str]
    module: str

    def make(self) -> Command:
        return [self.python(), "-m", self.module]

    def python(self) -> Path:
        folder = FOLDER / self.name
        program, ready = folder / "bin" / "python", folder / "packages.txt"
        wanted = "\n".join(self.packages)
        if not ready.exists() or ready.read_text() != wanted:
            _run(sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder))
            pip = [sys.executable, "-m", "pip", "--python", str(program), "--disable-pip-version-check"]
            _run(*pip, "install", "--quiet", *self.packages)
            ready.write_text(wanted)
        return program


@dataclasses.dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """BullMQ of Node: that of the interop tests, else one of its own."""

    name: str

    def make(self) -> Command:
        program, folder = shutil.which("node"), FOLDER / self.name
        if program is None:
            raise NotInstalled("Node is not installed")
        package = _bullmq_in(_INTEROP) or _bullmq_in(folder)
        if package is None:
            folder.mkdir(parents=True, exist_ok=True)
            npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
            _run(*npm, f"bullmq@{_NODE_MAJOR}", "ioredis@5")
            package = _bullmq_in(folder)
        if package is None:
            raise NotInstalled("npm did not install it")
        return [program, _DRIVERS / "bullmq_node.mjs", package]


Environment = PythonEnvironment | NodeEnvironment


async def made(environment: Environment) -> Command | NotInstalled:
    """The command that drives the peer, without its arguments, or why there is none."""
    try:
        return await asyncio.to_thread(environment.make)
    except NotInstalled as error:
        return error
    except (OSError, subprocess.SubprocessError) as error:
        print(getattr(error, "stderr", None) or error, file=sys.stderr)
        return NotInstalled("installing failed")


def version_in(name: str) -> str:
    """The version of the peer that is installed in the environment of its name."""
    if name == "bullmq-node":
        package = _bullmq_in(_INTEROP) or _bullmq_in(FOLDER / name)
        return str(json.loads((package / "package.json").read_text())["version"]) if package else "?"
    distribution = name.partition("-")[0]
    return next((found.version for found in distributions(name=distribution, path=_site(name))), "?")


def _site(name: str) -> list[str]:
    return [str(folder) for folder in (FOLDER / name).glob("lib/python*/site-packages")]


def _bullmq_in(folder: Path) -> Path | None:
    package = folder / "node_modules" / "bullmq"
    about = package / "package.json"
    right = about.exists() and str(json.loads(about.read_text())["version"]).startswith(f"{_NODE_MAJOR}.")
    return package if right else None


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LONGEST_S)
