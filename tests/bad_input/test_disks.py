"""Disks that are full, or cannot be written."""

import json
import re
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.programs import command, run


@pytest.fixture(scope="module")
def own_mounts() -> list[str]:
    words = programs.with_own_mounts()
    if words is None:
        pytest.skip("needs the right to mount a small file system in a name space of its own")
    return words


async def test_a_read_only_disk(own_mounts: list[str], tmp_path: Path) -> None:
    answer = json.loads(await run([*own_mounts, *command(programs.open_on_a_read_only_disk, tmp_path)]))
    assert {file: error["code"] for file, error in answer["errors"].items()} == {
        "known": "store-read-only",
        "new": "store-read-only",
    }
    assert str(tmp_path / "queue.db") in answer["errors"]["known"]["message"]
    assert answer["found"] == ["kept", "later"]


async def test_a_disk_that_fills_up(own_mounts: list[str], tmp_path: Path) -> None:
    """The producer is told that its job was not taken, earlier ones are intact, and with room it goes on."""
    answer = json.loads(await run([*own_mounts, *command(programs.fill_a_disk, tmp_path)]))
    assert answer["code"] == "store-full"
    assert re.search(r"queue\.db: the disk is full; nothing was written", answer["message"])
    assert len(answer["added"]) > 5
    assert answer["counted"] == len(answer["added"])
    assert answer["intact"] == [*answer["added"], answer["later"]]


async def test_opening_on_a_disk_that_is_full(own_mounts: list[str], tmp_path: Path) -> None:
    """However little room is left: it opens or is refused, and the job is there once there is room."""
    answer = json.loads(await run([*own_mounts, *command(programs.open_on_a_full_disk, tmp_path)]))
    first, *_, last = answer["errors"]
    assert {error["code"] for error in answer["errors"] if error is not None} == {"store-full"}
    assert str(tmp_path / "queue.db") in first["message"]
    assert last is None
    assert answer["found"] == "kept"


async def test_claiming_on_a_disk_that_is_full(own_mounts: list[str], tmp_path: Path) -> None:
    """To note that the claim arrived needs no room: that was taken when the store was opened."""
    assert (await run([*own_mounts, *command(programs.claim_on_a_full_disk, tmp_path)])).split() == ["1"]
