"""What stands below a job, as far as a caller sees it: what is done to a job may reach all of that."""

from bullpen.job.record import JobRecord, JobRef
from bullpen.server.access.caller import Caller
from bullpen.server.looking import look_up
from bullpen.server.problems import forbidden
from bullpen.server.site import Site
from bullpen.stores.base import Child, ChildState

_MOST = 10_000
"""Jobs of a tree that are looked at before something is done to it."""


def sees(caller: Caller, ref: JobRef, job: JobRecord | None) -> bool:
    """Whose a job was that is gone, nobody knows: only those who see everything are told of it."""
    if not caller.sees_queue(ref.queue):
        return False
    return caller.tenant is None if job is None else caller.sees_tenant(job.tenant)


async def check_below(site: Site, caller: Caller, top: JobRef, *, only_pending: bool = False) -> None:
    """Refused where a job below is not the caller's to see; one that is gone is nobody's any more.

    With `only_pending` the act goes no further than children that their parent still waits for.
    """
    if caller.tenant is None and caller.queues is None:
        return
    waiting, looked_at = [top], 0
    while waiting:
        children = await _children(site, waiting.pop(), only_pending=only_pending)
        looked_at += len(children)
        if looked_at > _MOST:
            raise forbidden(f"children: more than {_MOST:,} jobs stand below, too many to see whose they are")
        known = await look_up(site.store, (child.ref for child in children))
        if not all(sees(caller, ref, job) for ref, job in known.items()):
            raise forbidden("children: a job below this one is not the caller's to see")
        waiting += known


async def _children(site: Site, parent: JobRef, *, only_pending: bool) -> list[Child]:
    """Of one job, and not many more than are looked at."""
    found: list[Child] = []
    cursor: str | None = None
    while len(found) <= _MOST:
        page = await site.store.children(parent, cursor=cursor)
        found += [child for child in page.children if child.state == ChildState.PENDING or not only_pending]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found
