"""Every example runs as printed: the blocks of a page in order, in a folder of their own.

A block that begins with `# file: name.py` is saved under that name beside the script, for
the examples that need a module. What a page shows as output (`text`) must be printed. A page
that puts its store on Redis gets a server, and the Node programs that it starts are started.
"""

import contextlib
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages, blocks
from tests.support.redis_server import running_redis

_LIMIT_S = 60
_PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
_EXAMPLES = [*sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "examples" / "agents").glob("*.py"))]
_FILE_MARK = re.compile(r"(?:#|//) file: (\S+)\n")
_IMPORT = re.compile(r"^from (bullpen\.[\w.]+) import ([\w ,]+|\([^)]*\))", re.MULTILINE)
_SHORT = ("bullpen.agents", "bullpen.agents.llm", "bullpen.records", "bullpen.remote", "bullpen.server")
_ON_REDIS = "export BULLPEN_STORE=redis://"
_NODE = re.compile(r"^node (\S+)( &)?$", re.MULTILINE)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _usual_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("BULLPEN_")}


@contextlib.contextmanager
def _surroundings(page: Path, folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which the page's script runs, with what its shell lines start beside it."""
    shell = "\n".join(block.body for block in blocks(page) if block.info == "sh")
    with contextlib.ExitStack() as running:
        environment = _usual_environment()
        if _ON_REDIS in shell:
            environment["BULLPEN_STORE"] = running.enter_context(running_redis()).url
        if programs := _NODE.findall(shell):
            (folder / "node_modules").symlink_to(ROOT / "tests" / "interop" / "node_modules")
            for name, stays in programs:
                running.enter_context(_node(folder / name, environment, stays=bool(stays)))
        yield environment


@contextlib.contextmanager
def _node(program: Path, environment: Mapping[str, str], *, stays: bool) -> Iterator[None]:
    node = shutil.which("node")
    assert node is not None, "Node is not installed"
    process = subprocess.Popen([node, str(program)], env=dict(environment), cwd=program.parent)
    try:
        if not stays:
            assert process.wait(_LIMIT_S) == 0, f"{program.name} failed"
        yield
    finally:
        process.kill()
        process.wait()


def _run(script: Path, folder: Path, environment: Mapping[str, str]) -> str:
    """What the script prints; fails if it fails, or takes too long."""
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, f"{script.name} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def _write(page: Path, folder: Path) -> Path | None:
    """Save the page's files and its script, with each line of the script where it stands in the page."""
    script: list[str] = []
    for block in blocks(page):
        if file := _FILE_MARK.match(block.body):
            (folder / file[1]).write_text(block.body)
        elif block.info == "python":
            script.append(block.body)
    if not script:
        return None
    path = folder / "page.py"
    path.write_text("\n".join(script))
    return path


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_a_page_runs_as_printed(page: Path, tmp_path: Path) -> None:
    """A reader who copies the blocks of a page gets what the page says."""
    script = _write(page, tmp_path)
    assert script is not None, "a page of this kind has at least one example"
    with _surroundings(page, tmp_path) as environment:
        printed = iter(_run(script, tmp_path, environment).splitlines())
    for block in blocks(page):
        if block.info == "text":
            for line in block.body.splitlines():
                assert line in printed, f"{page.name} shows this line, which was not printed in its turn: {line}"


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_no_block_is_exempt(page: Path) -> None:
    """A block of Python is marked `python` and nothing else, so that none slips past the run."""
    odd = [block.info for block in blocks(page) if block.info.startswith("py") and block.info != "python"]
    bare = [block.body for block in blocks(page) if not block.info]
    assert not odd
    assert not bare, "say what a block is: python, text or sh"


@pytest.mark.parametrize("page", [*all_pages(), *_EXAMPLES], ids=_name)
def test_names_are_imported_by_their_short_path(page: Path) -> None:
    """What a room offers at its door is not fetched from the depth of it."""
    for where, names in _IMPORT.findall(page.read_text()):
        for room in _SHORT:
            if where.startswith(f"{room}."):
                offered = set(importlib.import_module(room).__all__)
                assert not offered & set(re.findall(r"\w+", names)), f"from {where}, not from {room}"


@pytest.mark.parametrize("example", _EXAMPLES, ids=_name)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    """Each file of `examples/` runs by itself."""
    _run(example, tmp_path, _usual_environment())
