"""What BullMQ sees of jobs that sleep or wait for a signal."""

from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Parked
from bullpen.stores.base import Delivery
from tests.interop.cells import TO_PEER, cell
from tests.interop.peers import Peer
from tests.interop.us import QUEUE, Us


@cell("durable steps: parked jobs", TO_PEER)
async def test_a_parked_job_is_delayed_for_the_peer(us: Us, peer: Peer) -> None:
    """BullMQ lists it among the delayed; a signal makes it wait, and its end is a job's end like others."""
    await us.queue.add("welcome")
    await us.settle(await us.claim("first"), Parked(None, ("approved",), "waits"))
    assert (await peer.call("job", id="1"))["state"] == "delayed"
    assert (await peer.call("counts"))["delayed"] == 1
    ref = JobRef(QUEUE, "1")
    assert await us.store.signal(ref, "approved", b"1", request="signal") == Delivery.WOKEN
    assert (await peer.call("job", id="1"))["state"] == "waiting"
    await us.settle(await us.claim("again"), Completed(b'"done"'))
    assert (await peer.call("job", id="1"))["returnvalue"] == "done"
    assert (await us.store.job(ref)).state == State.COMPLETED
