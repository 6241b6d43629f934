"""What Node sees of jobs that sleep or wait for a signal."""

from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Parked, Settlement
from bullpen.stores.base import Delivery
from bullpen.stores.redis import RedisStore
from tests.interop.node import Node


async def test_a_parked_job_is_delayed_for_node(store: RedisStore, node: Node) -> None:
    """BullMQ lists it among the delayed; a signal makes it wait, and Node hears of its completion."""
    await node.call("listen", queue="mail")
    await store.add([NewJob("mail", "welcome")], request="add")
    ref = JobRef("mail", "1")
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=30_000, request="claim")).jobs
    await store.settle([Settlement(claimed.lease, Parked(None, ("approved",), "waits"))], request="park")
    assert (await node.call("job", queue="mail", id="1"))["state"] == "delayed"
    assert (await node.call("counts", queue="mail"))["delayed"] == 1
    assert await store.signal(ref, "approved", b"1", request="signal") == Delivery.WOKEN
    assert (await node.call("job", queue="mail", id="1"))["state"] == "waiting"
    (again,) = (await store.claim({"mail": 1}, worker="w", lease_ms=30_000, request="again")).jobs
    await store.settle([Settlement(again.lease, Completed(b'"done"'))], request="complete")
    assert (await node.call("result", queue="mail", id="1", timeout=20_000)) == {"value": "done"}
    assert (await store.job(ref)).state == State.COMPLETED
