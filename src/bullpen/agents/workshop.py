"""What tasks are done with: the records, the models, the tools, the sandboxes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from bullpen.agents.family import Ender
from bullpen.agents.llm.models import ModelTable
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.retrying import RetryRules
from bullpen.agents.llm.router import Router
from bullpen.agents.llm.shared_health import HealthInRecords
from bullpen.agents.redacting import Redactor
from bullpen.agents.rescuing import Rescuer
from bullpen.agents.submitting import Prepared
from bullpen.agents.surroundings import Sandboxed, Surroundings
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.job.spec import NewJob
from bullpen.observing import Observers
from bullpen.queue.queue import Queue
from bullpen.records.chores import Chore, Chores
from bullpen.records.records import Records
from bullpen.records.runs.forgetting import forget_old
from bullpen.records.runs.words import Task
from bullpen.records.turn_lease import TurnLease
from bullpen.stores.base import Store

_RESCUE_EVERY_S, _TELL_EVERY_S, _PROBE_EVERY_S, _EXPIRE_EVERY_S = 10, 10, 60, 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    records: Records
    provider: Router
    models: ModelTable
    tools: Toolbox
    surroundings: Surroundings
    redactor: Redactor = field(default_factory=Redactor)
    job_of: Callable[[Prepared, str], NewJob]
    """The job that carries a task of this tenant."""
    queue_of: Callable[[str], Queue]
    """A queue by its name."""
    sent: Callable[[], None]
    """Called when tasks were written: their jobs are on their way."""
    done_with: Callable[[str], Awaitable[None]]
    """Called when an activation of a task ends: gives back what tools hold for it."""
    ender: Ender
    ended: Callable[[Task], Awaitable[None]]
    """Called when a task is over: another may wait for it."""
    observers: Observers = field(default_factory=Observers)


def router_for(providers: Sequence[Provider], models: ModelTable, records: Records, observers: Observers) -> Router:
    """All models as one, with what all workers on these records know of their providers."""
    # A task that meets a limit waits in its queue: in a worker it would hold a slot.
    retries = RetryRules(waits_if_limited=False)
    health = HealthInRecords(records.providers)
    return Router(providers, models, retries=retries, health=health, observers=observers)


def chores_of(workshop: Workshop, store: Store) -> Chores:
    """What whoever has a workshop open does now and then."""
    records = workshop.records
    rescuer = Rescuer(
        records, store, redactor=workshop.redactor, observers=workshop.observers, ended=workshop.ended
    )  # fmt: skip
    # To list all blobs takes a while: one process does, whichever comes first in its hour.
    expiring = TurnLease(records.database, "expire-files", hold_ms=_EXPIRE_EVERY_S * 1_000)
    around = workshop.surroundings
    pools = [Chore("sandboxes", _TELL_EVERY_S, around.tell)] if isinstance(around, Sandboxed) else []
    return Chores(
        Chore("rescue", _RESCUE_EVERY_S, rescuer.rescue),
        Chore("probe", _PROBE_EVERY_S, workshop.provider.probe),
        Chore("expire", _EXPIRE_EVERY_S, records.files.expire, lease=expiring),
        Chore("forget", _EXPIRE_EVERY_S, lambda: forget_old(records.database)),
        *pools,
    )
