"""One endpoint for a supervisor and its processes: what a pod has one port for.

Each process serves at a socket of its own; the supervisor asks them all. It is alive while its own
loop is, since it replaces processes itself; it is ready while one of them is.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.options import to_ms
from bullpen.stores.base import Store
from bullpen.telemetry.checks import Check, Health, HealthOptions, Status, judge, look_at
from bullpen.telemetry.gauges import StoreGauges
from bullpen.telemetry.health import HEALTH, LIVE, METRICS, READY, Heart
from bullpen.telemetry.http import Answer, HttpServer, Place, json_answer
from bullpen.telemetry.metrics import Metrics
from bullpen.telemetry.registry import CONTENT_TYPE, label_text

_ASK_S = 3.0


def socket_of(folder: str, worker: str) -> str:
    """Where the process of this worker serves; short, since a socket's path may have about 100 letters."""
    return str(Path(folder) / (hashlib.sha256(worker.encode()).hexdigest()[:12] + ".sock"))


class FleetHealth:
    """Serves for all processes of a supervisor, for the time of a block."""

    def __init__(
        self,
        place: Place,
        folder: str,
        names: Callable[[], Iterable[str]],
        store: Store,
        queues: Iterable[str],
        metrics: Metrics,
        options: HealthOptions | None = None,
    ) -> None:
        self.place = place
        self._folder = folder
        self._names = names
        self._store = store
        self._queues = tuple(queues)
        self._metrics = metrics
        self._options = options or HealthOptions()
        self._gauges = StoreGauges(metrics.registry)
        self._places: dict[str, int] = {}
        self._heart: Heart | None = None
        self._beating: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._heart = Heart(asyncio.get_running_loop(), SYSTEM_CLOCK)
        pages = {LIVE: self._live, READY: self._ready, HEALTH: self._health, METRICS: self._text}
        server = HttpServer(self.place, pages)
        server.around(self._open, self._close)
        await asyncio.to_thread(server.start)
        self.place = server.place
        try:
            yield
        finally:
            await asyncio.to_thread(server.stop)

    async def _open(self) -> None:
        assert self._heart is not None
        # Owned by this server until it closes.
        self._beating = asyncio.create_task(self._heart.beat())

    async def _close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
        await self._store.close()

    async def _live(self) -> Answer:
        assert self._heart is not None
        silent_ms = self._heart.silent_ms()
        is_well = silent_ms <= to_ms("live_within", self._options.live_within)
        check = Check(Status.HEALTHY if is_well else Status.UNHEALTHY, {"silent_ms": silent_ms})
        return json_answer(Health(check.status, {"event_loop": check}), ok=is_well)

    async def _ready(self) -> Answer:
        answers = await self._ask_all(READY)
        ready = [name for name, answer in answers.items() if answer.status == 200]
        check = Check(Status.HEALTHY if ready else Status.UNHEALTHY, {"processes": len(answers), "ready": len(ready)})
        return json_answer(Health(check.status, {"processes": check}), ok=bool(ready))

    async def _health(self) -> Answer:
        found = judge(await look_at(self._store, self._queues), self._options)
        return json_answer(found, ok=found.status != Status.UNHEALTHY)

    async def _text(self) -> Answer:
        self._gauges.show(await look_at(self._store, self._queues))
        answers = await self._ask_all(METRICS)
        numbered = {self._number(name): answer.body for name, answer in answers.items() if answer.status == 200}
        return Answer(joined(self._metrics.text(), numbered), content_type=CONTENT_TYPE)

    def _number(self, name: str) -> int:
        """The lowest that is free: labels stay few however often processes are replaced."""
        alive = set(self._names())
        self._places = {known: n for known, n in self._places.items() if known in alive}
        if name not in self._places:
            taken = set(self._places.values())
            self._places[name] = next(n for n in range(1, len(taken) + 2) if n not in taken)
        return self._places[name]

    async def _ask_all(self, path: str) -> dict[str, Answer]:
        names = list(self._names())
        answers = await asyncio.gather(*(ask(socket_of(self._folder, name), path) for name in names))
        return dict(zip(names, answers, strict=True))


async def ask(socket: str, path: str) -> Answer:
    """GET this from the process at that socket; one that does not answer is 503."""
    try:
        async with asyncio.timeout(_ASK_S):
            reader, writer = await asyncio.open_unix_connection(socket)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: worker\r\n\r\n".encode())
                answer = (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        return Answer(f"{type(error).__name__}\n", 503)
    head, _, body = answer.partition("\r\n\r\n")
    return Answer(body, int(head.split(" ", 2)[1]))


class _Family(msgspec.Struct):
    head: list[str] = []
    lines: list[str] = []


def joined(own: str, others: Mapping[int, str]) -> str:
    """Texts of several processes as one: each metric once, with the process as a label."""
    families: dict[str, _Family] = {}
    _take_in(families, own, "")
    for process, text in sorted(others.items()):
        _take_in(families, text, label_text(("process",), (str(process),))[1:-1])
    return "".join(line + "\n" for family in families.values() for line in (*family.head, *family.lines))


def _take_in(families: dict[str, _Family], text: str, label: str) -> None:
    name = ""
    for line in text.splitlines():
        if line.startswith("# "):
            name = line.split(" ", 3)[2]
            family = families.setdefault(name, _Family())
            if line not in family.head:
                family.head.append(line)
        else:
            families[name].lines.append(_labelled(line, label) if label else line)


def _labelled(line: str, label: str) -> str:
    series, _, value = line.rpartition(" ")
    metric, brace, rest = series.partition("{")
    return f"{metric}{{{label},{rest} {value}" if brace else f"{metric}{{{label}}} {value}"
