"""What `bullpen worker` and `bullpen agent` set up, as their options and the environment say."""

import contextlib
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from bullpen.errors import BadOption
from bullpen.observing import Observers
from bullpen.settings import told, whole_from
from bullpen.stores.base import Store
from bullpen.telemetry.checks import HealthOptions
from bullpen.telemetry.fleet import FleetHealth, socket_of
from bullpen.telemetry.health import HealthServer
from bullpen.telemetry.http import Place
from bullpen.telemetry.logs import JobIds, JsonFormatter
from bullpen.telemetry.metrics import Metrics
from bullpen.worker.supervised import own_name

PORT = "BULLPEN_HEALTH_PORT"
HOST = "BULLPEN_HEALTH_HOST"
SOCKETS = "BULLPEN_HEALTH_SOCKETS"
"""Set by a supervisor for its processes: the folder in which each serves at a socket of its own."""
TENANTS = "BULLPEN_METRICS_TENANTS"
LOG_FORMAT = "BULLPEN_LOG_FORMAT"
LOG_FORMATS = ("text", "json")

_TEXT = "%(asctime)s %(levelname)-7s %(message)s"
_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65_535
_MOST_TENANTS = 1_000_000


def equip(observers: Observers, *, is_remote: bool = False) -> None:
    """Add what is asked for and not there yet: metrics with their endpoint, ids for the log."""
    if log_format() == "json" and not _has(observers, JobIds):
        observers.append(JobIds())
    folder, place = os.environ.get(SOCKETS), place_asked_for()
    if place is None or _has(observers, HealthServer):
        return
    if folder:
        place = Place(socket=socket_of(folder, own_name()))
    options = HealthOptions.from_environment()
    with_store = not folder and not is_remote
    observers.append(HealthServer(metrics_of(observers), place, options, with_store=with_store))


def metrics_of(observers: Observers) -> Metrics:
    """The application's own, or new ones that look on from now on."""
    found = next((one for one in observers if isinstance(one, Metrics)), None)
    if found is None:
        found = Metrics(tenants=whole_from(TENANTS, 0, 0, _MOST_TENANTS))
        observers.append(found)
    return found


def place_asked_for() -> Place | None:
    """Where to serve; None if nobody asked."""
    if not told(PORT):
        return None
    return Place(whole_from(PORT, 0, 0, _MAX_PORT), told(HOST) or _LOOPBACK)


# ── several processes ────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def sockets_of_fleet() -> Iterator[None]:
    """A folder for the sockets of a supervisor's processes, if anyone is to ask them."""
    if place_asked_for() is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="bullpen-") as folder:
        os.environ[SOCKETS] = folder
        yield


@contextlib.asynccontextmanager
async def serving_fleet(
    observers: Observers, store: Store, queues: Iterable[str], names: Callable[[], Iterable[str]]
) -> AsyncIterator[None]:
    place = place_asked_for()
    if place is None:
        yield
        return
    options, metrics = HealthOptions.from_environment(), metrics_of(observers)
    async with FleetHealth(place, os.environ[SOCKETS], names, store, queues, metrics, options).serving():
        yield


# ── the log ──────────────────────────────────────────────────────────────────────────────────


def start_log() -> None:
    """To stderr, if the application has not set up its own."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format() == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def log_format() -> str:
    text = told(LOG_FORMAT) or LOG_FORMATS[0]
    if text not in LOG_FORMATS:
        raise BadOption(f"{LOG_FORMAT}: {' or '.join(LOG_FORMATS)}, not {text!r}")
    return text


def _has(observers: Observers, kind: type) -> bool:
    return any(isinstance(one, kind) for one in observers)
