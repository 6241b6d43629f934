"""What all families of routes share."""

import contextlib
from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AfterValidator
from starlette.requests import HTTPConnection

from bullpen.errors import JobMissing
from bullpen.job.record import JobRecord, JobRef
from bullpen.records.paging import MOST
from bullpen.server.access.caller import Caller
from bullpen.server.envelope import SLASH
from bullpen.server.guarding import AgentsRoute, GuardedRoute, UploadRoute, of_agents
from bullpen.server.site import Site, site_of
from bullpen.server.tenant_names import ids_of


async def _the_site(connection: HTTPConnection) -> Site:
    return site_of(connection)


async def _of_agents(connection: HTTPConnection) -> None:
    of_agents(connection)


# Dependencies are coroutines, also where they wait for nothing: FastAPI sends any other function to a thread.
TheSite = Annotated[Site, Depends(_the_site)]


def _as_written(part: str) -> str:
    part = part.replace(SLASH, "/")
    if "\0" in part:
        raise ValueError("has a character that no name has")
    return part


QueueName = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.-]+$")]
JobId = Annotated[str, Path(min_length=1, max_length=300), AfterValidator(_as_written)]
Name = Annotated[str, Path(min_length=1, max_length=200), AfterValidator(_as_written)]
Limit = Annotated[int, Query(ge=1, le=MOST)]
Cursor = Annotated[str | None, Query(max_length=2_000)]
Text = Annotated[str | None, Query(max_length=300, pattern=r"^[^\x00]*$")]
Millis = Annotated[int | None, Query(ge=0, lt=2**53)]


def family(*tags: str) -> APIRouter:
    """A router for one family of guarded routes."""
    return APIRouter(prefix="/v1", route_class=GuardedRoute, tags=list(tags))


def agents_family(*tags: str) -> APIRouter:
    """The same of agents, who tell errors by codes of their own too."""
    return APIRouter(prefix="/v1", route_class=AgentsRoute, tags=list(tags), dependencies=[Depends(_of_agents)])


def uploads_family(*tags: str) -> APIRouter:
    """The same where a body is a file."""
    return APIRouter(prefix="/v1", route_class=UploadRoute, tags=list(tags), dependencies=[Depends(_of_agents)])


async def has_jobs(site: Site, tenant: str | None, queue: str) -> bool:
    """Whether the queue is there for a caller with this tenant; another's is as if it were not."""
    own = await own_queues(site, tenant, queue)
    return own is None or queue in own


async def own_queues(site: Site, tenant: str | None, queue: str | None = None) -> Collection[str] | None:
    """The queues, or the one that is asked for, in which a tenant has jobs; None: all, without a tenant."""
    return None if tenant is None else (await site.records.jobs.counts(queue=queue, tenant=tenant)).keys()


async def job_of(site: Site, caller: Caller, queue: str, job_id: str) -> JobRecord:
    """The job, if it is the caller's to see; else the same JobMissing as for one that never was.

    A caller with a tenant may also say the id that it chose at the add.
    """
    if caller.sees_queue(queue):
        for stored in ids_of(caller.tenant, job_id):
            with contextlib.suppress(JobMissing):
                job = await site.store.job(JobRef(queue, stored))
                if caller.sees_tenant(job.tenant):
                    return job
    raise JobMissing(f"no job {job_id!r} in queue {queue!r}")
