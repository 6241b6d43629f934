"""The command line as a whole: help, errors, exit codes, completion, documentation."""

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen import SqliteStore
from bullpen.cli.main import VERBS
from bullpen.cli.verb import Verb
from tests.cli.commands import Folder, environment, words
from tests.docs.pages import REFERENCE, rows, section
from tests.support.places import FilePlace

_NAMES = [verb.name for verb in VERBS]
_PAGE = REFERENCE / "cli.md"


@pytest.fixture
def place(tmp_path: Path) -> FilePlace:
    """The command line as a whole is the same on each store; test_errors.py has what a store answers."""
    return FilePlace(tmp_path)


def test_help_lists_every_verb(folder: Folder) -> None:
    answer = folder.bullpen("--help")
    assert answer.code == 0
    assert folder.bullpen().out == answer.out
    for name in _NAMES:
        assert f"\n    {name} " in answer.out
    assert max(map(len, answer.lines)) <= 80


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help_with_examples_and_is_in_the_reference(
    folder: Folder, place: FilePlace, verb: Verb
) -> None:
    """A verb has its line in the reference's table and a section with each of its options."""
    name = verb.name
    answer = folder.bullpen(name, "--help", COLUMNS="80")
    assert answer.code == 0
    options, examples = answer.out.split("examples:\n")
    assert f"  bullpen {name}" in examples
    assert not place.path.exists()
    assert name in [row[0] for row in rows(_PAGE.read_text())]
    told = section(_PAGE, f"## {name}")
    named = set(re.findall(r"--[a-z]+", options)) - {"--help", "--store", "--json"}
    assert not {option for option in named if f"`{option}" not in told}


def test_version(folder: Folder) -> None:
    assert folder.bullpen("--version").out.startswith("bullpen ")


@pytest.mark.parametrize(
    "words, code, error",
    [
        (["frob"], 2, "usage"),
        (["jobs"], 2, "usage"),
        (["jobs", "mail", "--state", "odd"], 2, "usage"),
        (["jobs", "mail", "--limit", "0"], 2, "usage"),
        (["jobs", "not a name"], 2, "bad-name"),
        (["enqueue", "mail", "x", "{bad"], 2, "bad-data"),
        (["enqueue", "mail", "x", "--id", "7"], 2, "bad-id"),
        (["enqueue", "mail", "x", "--delay", "soon"], 2, "usage"),
        (["--store", "odd:thing", "queues"], 2, "bad-option"),
        (["--store", "missing.db", "queues"], 3, "store-unavailable"),
        (["queues", "--store", "missing.db"], 3, "store-unavailable"),
        (["--store", "other.txt.db", "queues"], 3, "store-corrupt"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_an_error_is_one_line_with_its_code(shop: Folder, words: list[str], code: int, error: str) -> None:
    """Exit code for scripts, a stable word to search for, and never a traceback."""
    (shop.path / "other.txt.db").write_text("this is no database, but it is long enough to be looked at" * 20)
    answer = shop.bullpen(*words)
    assert answer.code == code, answer.err
    (line,) = answer.err.splitlines()
    assert line.startswith("bullpen: ")
    assert line.endswith(f"[{error}]")
    assert not (shop.path / "missing.db").exists(), "looking makes no file"


def test_redis_that_is_away_is_unreachable(folder: Folder) -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        answer = folder.bullpen("--store", f"redis://127.0.0.1:{nobody_listens.getsockname()[1]}", "queues")
    assert answer.code == 3
    assert answer.err.endswith("[store-unavailable]\n")


def test_a_reader_that_has_seen_enough_is_no_error(shop: Folder) -> None:
    """`bullpen events … | head -1` ends in silence."""
    with shop.started("events", "mail", "--follow", "--from", "start") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        shop.bullpen("enqueue", "mail", "one-more")
        shop.bullpen("enqueue", "mail", "one-more")
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb(folder: Folder, shell: str) -> None:
    script = folder.bullpen("completion", shell).out
    assert all(name in script for name in _NAMES)
    assert "fingerprint" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    "line, offered",
    [
        ("bullpen wor", {"worker", "workers"}),
        ("bullpen jobs mail --ne", {"--newest"}),
        ("bullpen jobs mail --state f", {"failed"}),
        ("bullpen dead pu", {"purge"}),
        ("bullpen dead purge --fing", {"--fingerprint"}),
        ("bullpen completion f", {"fish"}),
    ],
)
def test_bash_completes(folder: Folder, line: str, offered: set[str]) -> None:
    script = folder.bullpen("completion", "bash").out
    parts = line.split(" ")
    ask = f"COMP_WORDS=({' '.join(parts)}); COMP_CWORD={len(parts) - 1}; _bullpen; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash"], input=f"{script}\n{ask}\n", capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered


def test_the_command_line_is_quick_to_load() -> None:
    """Nothing that only the demo or another tool needs is loaded to show help."""
    ask = "import sys, bullpen.cli.main as m; m.build_parser(); print('rich' in sys.modules, 'redis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


async def test_the_default_store_is_in_the_folder(tmp_path: Path) -> None:
    command = words("enqueue", "mail", "x")
    subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=True)
    store = SqliteStore(tmp_path / ".bullpen" / "queue.db")
    await store.open()
    assert await store.queues() == ["mail"]
    await store.close()
