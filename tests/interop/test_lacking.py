"""What a client lacks, shown: the cells of the table that name a lack rest on these."""

import pytest

from bullpen import dedup
from tests.interop.cells import NPM_5, NPM_6, PYPI
from tests.interop.peers import Peer
from tests.interop.us import QUEUE, Us


@pytest.mark.parametrize(
    "peer, method, has_it",
    [
        (NPM_5, "Job.waitUntilFinished", True),
        (NPM_6, "Job.waitUntilFinished", True),
        (PYPI, "Job.waitUntilFinished", False),
        (NPM_5, "Job.changeDelay", True),
        (NPM_6, "Job.changeDelay", True),
        (PYPI, "Job.changeDelay", False),
    ],
    indirect=["peer"],
)
async def test_a_method_that_a_client_has_or_lacks(peer: Peer, method: str, has_it: bool) -> None:
    assert await peer.call("has", path=method) == has_it


@pytest.mark.parametrize("peer", [NPM_5, PYPI], indirect=True)
async def test_a_client_that_does_not_know_reschedule_leaves_the_time_alone(us: Us, peer: Peer) -> None:
    job = await us.queue.add("first", delay=3600, dedup=dedup("s"))
    due_ms = (await job.record()).run_at_ms
    opts = {"delay": 1, "deduplication": {"id": "s", "reschedule": True}}
    assert await peer.call("add", name="second", data={}, opts=opts) == job.id
    assert (await job.record()).run_at_ms == due_ms


@pytest.mark.parametrize("peer", [PYPI], indirect=True)
async def test_the_python_client_names_its_workers_otherwise_than_node_does(us: Us, peer: Peer) -> None:
    """It writes the queue's name as it is, Node in base64: neither lists the workers of the other."""
    await peer.call("work", options={"name": "peer-1"})
    await (await us.queue.add("a")).result(60)
    assert set(await peer.call("workers")) == {f"{peer.prefix}:{QUEUE}:w:peer-1"}
