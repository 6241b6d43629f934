"""A folder with a store that has something of everything."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bullpen import Failure, Queue, Store
from bullpen.job.verdicts import Completed, Failed, Settlement, Verdict
from tests.cli.commands import Folder
from tests.support.places import Place, place, redis_server
from tests.support.postgres_server import postgres_server

__all__ = ["place", "postgres_server", "redis_server"]

LONG = "a message that is so long that no table of eighty columns has room for it, with \x1b[31mcolour"


async def settle(store: Store, queue: str, verdicts: Sequence[Verdict]) -> None:
    """Claim as many jobs as there are verdicts, and end them so."""
    claimed = await store.claim({queue: len(verdicts)}, worker="a-worker", lease_ms=60_000, request=f"claim {queue}")
    pairs = zip(claimed.jobs, verdicts, strict=True)
    await store.settle([Settlement(one.lease, verdict) for one, verdict in pairs], request=f"settle {queue}")


@pytest.fixture
def folder(tmp_path: Path, place: Place) -> Folder:
    """With no store yet."""
    return Folder(tmp_path, place.address)


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def shop(folder: Folder, store: Store) -> Folder:
    """Mail: two failed alike, one completed, one delayed, one waiting. Reports: one failed, with a stack."""
    mail, reports = Queue(store, "mail"), Queue(store, "reports")
    await mail.add_bulk([mail.prepare("welcome", {"n": n}, priority=5) for n in range(3)])
    broken = Failed(Failure(LONG, type="TemplateError"))
    await settle(store, "mail", [broken, broken, Completed(b'"sent"')])
    await reports.add("monthly", {"month": "May"}, id="may", tenant="acme", tags=["big"])
    await settle(store, "reports", [Failed(Failure("no data", type="ValueError", stack="File report.py, in monthly"))])
    await reports.job("may").log("began", "gave up")
    await mail.add("digest", delay=3600, id="later", priority=5)
    await mail.add("welcome", {"n": 9}, id="next", priority=5)
    return folder
