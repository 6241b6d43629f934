"""What a remote worker may touch: jobs of its queues and of its tenant, by leases that it holds."""

from collections.abc import Iterable, Sequence

from bullpen.errors import BadOption
from bullpen.job.names import check_queue_name, is_text
from bullpen.job.record import JobRef, Lease
from bullpen.remote.messages import LONGEST_WAIT_S, MAX_AT_ONCE, MOST
from bullpen.server.access.caller import Caller, CallerKind
from bullpen.server.looking import look_up
from bullpen.server.problems import forbidden
from bullpen.stores.base import Renewal, Store, WorkerInfo

_LEASE_MS = range(100, 3_600_001)
_MAX_TEXT = 200


def check_queues(caller: Caller, queues: Iterable[str]) -> None:
    """Refused if one of these is none of the token's queues: nothing of the call is done."""
    for queue in queues:
        if not caller.sees_queue(check_queue_name(queue)):
            raise forbidden(f"the token is not for queue {queue!r}")


def check_lease_ms(lease_ms: int) -> None:
    if lease_ms not in _LEASE_MS:
        raise BadOption(f"lease_ms: from {_LEASE_MS.start} to {_LEASE_MS.stop - 1:,}, not {lease_ms}")


def check_wait_s(wait_s: float) -> None:
    if not 0 <= wait_s <= LONGEST_WAIT_S:
        raise BadOption(f"wait_s: from 0 to {LONGEST_WAIT_S}, not {wait_s}")


def check_text(field: str, text: str) -> str:
    if not is_text(text) or len(text) > _MAX_TEXT:
        raise BadOption(f"{field}: a text of 1 to {_MAX_TEXT} characters")
    return text


def check_count(field: str, count: int) -> None:
    if count > MAX_AT_ONCE:
        raise BadOption(f"{field}: at most {MAX_AT_ONCE:,} at once, not {count:,}")


def check_info(caller: Caller, info: WorkerInfo) -> None:
    """What a worker says of itself: of its queues, and numbers that can be written down."""
    check_queues(caller, info.queues)
    for number in (*info.queues.values(), info.pid, info.started_ms, info.beat_ms, info.jobs_done):
        if not 0 <= number <= MOST:
            raise BadOption(f"info: numbers from 0 to {MOST}, not {number}")


def worker_name(caller: Caller, worker: str) -> str:
    """Under which the store knows the worker: no token can speak for another's workers."""
    # A token may say the same name for two tenants; a key has one.
    of_tenant = f"/{caller.tenant}" if caller.kind is CallerKind.JWT and caller.tenant is not None else ""
    return f"{check_text('worker', worker)}@{caller.name}{of_tenant}"


def own_request(caller: Caller, verb: str, request: str) -> str:
    """Under which the store remembers the answer: no token can ask for another's, nor for another tenant's."""
    return f"remote {verb} {caller.scope} {check_text('request', request)}"


class Holdings:
    """Which leases are a caller's own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def own(self, caller: Caller, leases: Sequence[Lease]) -> set[JobRef]:
        """The jobs of these that are the caller's to touch; of others it learns nothing, as of lost ones."""
        check_count("leases", len(leases))
        check_queues(caller, {lease.ref.queue for lease in leases})
        if caller.tenant is None:
            return {lease.ref for lease in leases}
        jobs = await look_up(self._store, (lease.ref for lease in leases))
        return {ref for ref, job in jobs.items() if caller.sees_tenant(job.tenant)}

    async def renew(self, caller: Caller, leases: Sequence[Lease], lease_ms: int) -> list[Renewal]:
        """Extend those that are the caller's; all others are lost to it."""
        check_lease_ms(lease_ms)
        own = await self.own(caller, leases)
        kept = [lease for lease in leases if lease.ref in own]
        renewed = iter(await self._store.renew(kept, lease_ms=lease_ms))
        return [next(renewed) if lease.ref in own else Renewal.LOST for lease in leases]
