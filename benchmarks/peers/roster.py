"""The peers, each in the best set-up that its own documentation advises and that was found here.

What each leaves out stands in docs/explanation/performance.md.
"""

import dataclasses

from benchmarks.peers.environments import Environment, NodeEnvironment, PythonEnvironment
from benchmarks.systems import System


@dataclasses.dataclass(frozen=True, slots=True)
class Peer:
    environment: Environment
    system: System
    quick: bool = False
    """Whether it takes part in a short run."""


def _python(name: str, *packages: str, module: str = "") -> PythonEnvironment:
    return PythonEnvironment(name, packages, f"benchmarks.peers.drivers.{module or name}")


_HUEY = _python("huey", "huey==3.5.*", "redis", "hiredis")
_DBOS = _python("dbos", "dbos==3.3.*")

NODE = System(
    name="BullMQ, Node",
    store="Redis",
    setting="concurrency 50",
    concurrency=50,
    ways=("one", "concurrent", "bulk"),
    sampled=True,
    scripted=True,
)
PYPI = System(
    name="bullmq, PyPI",
    store="Redis",
    setting="concurrency 1",
    ways=("one", "concurrent", "bulk"),
    pace=0.15,
    sampled=True,
    scripted=True,
)
HUEY_REDIS = System(
    name="huey", store="Redis", setting="2 processes", processes=2, pace=0.2, sampled=True, acknowledges=False
)
HUEY_SQLITE = System(
    name="huey",
    store="SQLite",
    setting="2 processes, sync full, a poll of 10 ms",
    processes=2,
    pace=0.1,
    acknowledges=False,
)
PGQUEUER = System(
    name="PgQueuer",
    store="PostgreSQL",
    setting="batches of 500",
    concurrency=500,
    ways=("one", "concurrent", "bulk"),
    pace=0.75,
)
DRAMATIQ = System(
    name="Dramatiq", store="Redis", setting="2 processes × 8 threads", concurrency=8, processes=2, pace=0.15
)
TASKIQ = System(
    name="taskiq", store="Redis", setting="stream, 100 tasks, prefetch 500", concurrency=100, pace=0.1, sampled=True
)
ARQ = System(name="arq", store="Redis", setting="10 jobs, a poll of 10 ms", concurrency=10, pace=0.1)
SAQ = System(name="SAQ", store="Redis", setting="concurrency 10", concurrency=10, pace=0.1, sampled=True)
STREAQ = System(
    name="streaQ",
    store="Redis",
    setting="concurrency 250",
    concurrency=250,
    ways=("one", "concurrent", "bulk"),
    pace=0.1,
)
CELERY = System(name="Celery", store="Redis", setting="solo pool, acks late", pace=0.05)
RQ = System(name="RQ", store="Redis", setting="SimpleWorker", ways=("one", "concurrent", "bulk"), pace=0.03)
PROCRASTINATE = System(
    name="Procrastinate",
    store="PostgreSQL",
    setting="concurrency 10",
    concurrency=10,
    ways=("one", "concurrent", "bulk"),
    pace=0.03,
)
DBOS_SQLITE = System(
    name="DBOS",
    store="SQLite",
    setting="one-step workflows, 50 at a time, a poll of 50 ms",
    concurrency=50,
    ways=("one", "concurrent", "bulk"),
    pace=0.015,
    file_url="sqlite:///{}",
)
DBOS_POSTGRES = dataclasses.replace(DBOS_SQLITE, store="PostgreSQL", file_url="{}", pace=0.03)

PEERS = (
    Peer(NodeEnvironment("bullmq-node"), NODE, quick=True),
    Peer(_python("pgqueuer", "pgqueuer[asyncpg]==1.6.*", "uvloop"), PGQUEUER, quick=True),
    Peer(_HUEY, HUEY_SQLITE, quick=True),
    Peer(_HUEY, HUEY_REDIS, quick=True),
    Peer(_python("bullmq-pypi", "bullmq==3.4.*", "hiredis", "uvloop", module="bullmq_pypi"), PYPI),
    Peer(_python("taskiq", "taskiq==0.13.*", "taskiq-redis==1.*", "hiredis", "uvloop"), TASKIQ),
    # SAQ imports typing_extensions without asking for it.
    Peer(_python("saq", "saq[redis,hiredis]==0.26.*", "typing_extensions", "uvloop"), SAQ),
    Peer(_python("dramatiq", "dramatiq[redis]==2.2.*", "hiredis"), DRAMATIQ),
    Peer(_python("arq", "arq==0.28.*", "hiredis", "uvloop"), ARQ),
    Peer(_python("streaq", "streaq==7.2.*", "uvloop"), STREAQ),
    Peer(_python("celery", "celery[redis]==5.7.*", "hiredis"), CELERY),
    Peer(_python("rq", "rq==2.12.*", "hiredis"), RQ),
    Peer(_python("procrastinate", "procrastinate==3.10.*", "psycopg[binary,pool]", "uvloop"), PROCRASTINATE),
    Peer(_DBOS, DBOS_SQLITE),
    Peer(_DBOS, DBOS_POSTGRES),
)
