"""What a step costs to save does not grow with the workspace that it is saved in, nor with the steps before it."""

import io
import math
import random
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.agents.layers import Layers
from bullpen.agents.sandbox import Limits
from bullpen.agents.sandbox.base import Changes
from bullpen.records.blobs.blobs import Blobs, Kept
from bullpen.records.blobs.draft import Draft
from bullpen.records.blobs.folder import FolderHome

LIMITS = Limits(disk_mb=1_000)
FILE_BYTES = 500


class CountingBlobs(Blobs):
    """Know how many bytes were put, as they were given."""

    def __init__(self, home: FolderHome) -> None:
        super().__init__(home)
        self.bytes = 0

    async def keep(self, draft: Draft) -> Kept:
        kept = await super().keep(draft)
        self.bytes += kept.size
        return kept


def _added(step: int) -> Changes:
    """A step that writes one file."""
    data = random.Random(step).randbytes(FILE_BYTES)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        about = tarfile.TarInfo(f"./{step}.txt")
        about.size = len(data)
        archive.addfile(about, io.BytesIO(data))
    return Changes(packed.getvalue(), frozenset(), is_all=False, mark=step)


async def _costs(blobs: CountingBlobs, steps: int) -> AsyncIterator[tuple[int, Layers]]:
    """The bytes that have been put after each step."""
    layers = Layers(blobs)
    for step in range(steps):
        await layers.save(_added(step), LIMITS)
        yield blobs.bytes, layers


@pytest.mark.parametrize("steps", [512, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(3_600)])])
async def test_a_step_costs_as_much_at_the_end_as_at_the_start(tmp_path: Path, steps: int) -> None:
    """But for a logarithm: what is saved is written again as often as its layer doubles."""
    blobs = CountingBlobs(FolderHome(tmp_path / "blobs"))
    early = steps // 8
    costs = [(put, layers) async for put, layers in _costs(blobs, steps)]
    per_step_early, per_step = costs[early - 1][0] / early, costs[-1][0] / steps
    assert per_step <= 1.5 * per_step_early
    assert per_step <= (FILE_BYTES + 200) * (1 + math.log2(steps))
    newest = costs[-1][1].newest
    assert newest is not None
    assert len(newest.blobs) <= 2 * (1 + math.log2(steps)), "few blobs are read to restore it"
    restored = await Layers.load(blobs, newest.name)
    assert restored.entries == costs[-1][1].entries
    with tarfile.open(fileobj=io.BytesIO(await restored.archive()), mode="r:gz") as archive:
        names = archive.getnames()
        file = archive.extractfile("./7.txt")
        assert file is not None
        assert file.read() == random.Random(7).randbytes(FILE_BYTES)
    assert sorted(names) == sorted(f"./{step}.txt" for step in range(steps))
