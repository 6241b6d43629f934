"""Promises of `add`."""

from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import AddOutcome, Store
from bullpen.testing.harness import Harness


async def test_an_added_job_is_waiting(store: Store) -> None:
    """What was acknowledged can be read back, by the id that the answer gave."""
    (added,) = await store.add([NewJob("mail", "welcome", b'{"user":1}')], request="r1")
    job = await store.job(JobRef("mail", added.id))
    assert (job.state, job.name, job.data) == (State.WAITING, "welcome", b'{"user":1}')


async def test_the_same_request_adds_once(store: Store) -> None:
    """A producer that lost the answer asks again with the same request and gets the same job."""
    first = await store.add([NewJob("mail", "welcome")], request="r1")
    again = await store.add([NewJob("mail", "welcome")], request="r1")
    assert again == first
    assert (await store.counts("mail")).waiting == 1


async def test_a_pruned_explicit_id_is_remembered(harness: Harness, store: Store) -> None:
    """Retention does not make a finished job's id free again within a day of its add."""
    job = NewJob("mail", "welcome", id="user-1", spec=JobSpec(keep_completed=JobSpec().keep_completed))
    await store.add([job], request="r1")
    claimed = await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")
    await store.settle([Settlement(claimed.jobs[0].lease, Completed())], request="s1")
    (again,) = await store.add([job], request="r2")
    assert again.outcome == AddOutcome.DUPLICATE
