"""What type checkers say of code that uses Bullpen: nothing where it is right, and each mistake where it is wrong."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
FILES = ("correct.py", "wrong.py")
LIMIT_S = 280
_MARK = re.compile(r"# error: ")

pytestmark = pytest.mark.xdist_group("typing")


class Complaint(NamedTuple):
    file: str
    line: int
    text: str


def _run(*command: str, folder: Path) -> str:
    """What a checker prints; 0 and 1 are answers, anything else is its own failure."""
    done = subprocess.run(
        [sys.executable, "-m", *command, *(str(HERE / name) for name in FILES)],
        cwd=folder,
        env=os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYRIGHT_PYTHON_GLOBAL_NODE": "0"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def _mypy(folder: Path) -> list[Complaint]:
    # Outside the project and without its settings: as a user has it who installed Bullpen.
    printed = _run("mypy", "--strict", "--config-file=", "--output=json", "--cache-dir=cache", folder=folder)
    told = [json.loads(line) for line in printed.splitlines()]
    return [
        Complaint(Path(one["file"]).name, one["line"], one["message"]) for one in told if one["severity"] == "error"
    ]


def _pyright(folder: Path) -> list[Complaint]:
    printed = _run("pyright", "--outputjson", "--pythonpath", sys.executable, folder=folder)
    told: list[dict[str, Any]] = json.loads(printed)["generalDiagnostics"]
    return [
        Complaint(Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"])
        for one in told
        if one["severity"] == "error"
    ]


@pytest.fixture(scope="module", params=[_mypy, _pyright], ids=["mypy", "pyright"])
def complaints(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Complaint]:
    found: list[Complaint] = request.param(tmp_path_factory.mktemp("typing"))
    return found


def test_right_code_is_right(complaints: list[Complaint]) -> None:
    """Arguments, options and results have the types that the handler's signature says."""
    assert [one for one in complaints if one.file == "correct.py"] == []


def test_each_mistake_is_found(complaints: list[Complaint]) -> None:
    """Every line that is marked as wrong is, and no other."""
    lines = (HERE / "wrong.py").read_text().splitlines()
    marked = {n for n, line in enumerate(lines, 1) if _MARK.search(line)}
    found = {one.line: one.text for one in complaints if one.file == "wrong.py"}
    assert {n: lines[n - 1].strip() for n in marked - found.keys()} == {}, "not found"
    assert {n: text for n, text in found.items() if n not in marked} == {}, "found, but not marked"
    assert len(marked) > 20
