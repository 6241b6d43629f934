"""What the routes of a server hold: the store, the records, and what is made of them."""

import contextlib
from collections.abc import AsyncIterator

from starlette.requests import HTTPConnection

from bullpen.agents.agents import Agents
from bullpen.agents.llm.health import Health
from bullpen.agents.llm.shared_health import all_health
from bullpen.agents.redacting import Redactor
from bullpen.app import Bullpen
from bullpen.builtin.deliverer import Deliverer
from bullpen.builtin.follower import Follower
from bullpen.builtin.outgoing import Outgoing
from bullpen.clock import Clock
from bullpen.errors import BadOption
from bullpen.observing import Observers
from bullpen.queue.payload import Codec
from bullpen.queue.queue import Queue
from bullpen.records.chores import Chore, Chores
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.records import Records
from bullpen.records.relay import OutboxRelay
from bullpen.records.turn_lease import TurnLease
from bullpen.server.access.attempts import Attempts
from bullpen.server.access.identifying import Access
from bullpen.server.access.watching import Watches
from bullpen.server.event_history import Past
from bullpen.server.plans import Plans
from bullpen.server.queue_status import Standing
from bullpen.server.remote.desk import RemoteDesk
from bullpen.server.settings import ServerSettings
from bullpen.server.streams.cursors import SALT, Cursors
from bullpen.server.streams.hub import Hub
from bullpen.server.streams.lookout import Lookout
from bullpen.settings import store_from
from bullpen.stores.base import Store
from bullpen.telemetry.setup import metrics_of

_FORGET_EVERY_S = 600
_DAY_MS = 86_400_000


class Site:
    """One server at work."""

    def __init__(
        self,
        store: Store,
        records: Records,
        settings: ServerSettings,
        *,
        codec: Codec | None = None,
        observers: Observers | None = None,
        agents: Agents | None = None,
    ) -> None:
        self.store = store
        self.records = records
        self.settings = settings
        self.access = Access(records, settings)
        self.watches = Watches(self.access, store.clock)
        self.attempts = Attempts(store.clock, settings.attempts)
        self.plans = Plans(store, records)
        self.standing = Standing(store, records)
        self.past = Past(store)
        self.hub = Hub(store, self.standing.names, limit=settings.listener_events)
        self.feeder: ModelFeeder = records.feeder(store, fields=settings.fields)
        self.relay: OutboxRelay = records.relay(store)
        self.outgoing = Outgoing()
        self.follower = Follower(records, store, names=self.standing.names, find_every=1)
        self.deliverer = Deliverer(records, store, self.outgoing) if settings.delivers else None
        self.desk = RemoteDesk(store)
        self.observers = Observers() if observers is None else observers
        self.metrics = metrics_of(self.observers)
        self.agents = agents or _agents_of(store, records, codec, self.relay, self.observers)
        self._has_own_agents = agents is None
        self.lookout = Lookout(records.runs)
        self.chores = Chores(Chore("forget", _FORGET_EVERY_S, self.forget, lease=_lease_to_forget(records)))
        self.redactor = Redactor()
        self._codec = codec
        self._cursors: Cursors | None = None
        self._filled: set[str] = set()

    @property
    def clock(self) -> Clock:
        return self.store.clock

    def queue(self, name: str) -> Queue:
        """The queue of this name; BadName if it cannot be one."""
        return Queue(self.store, name, codec=self._codec, clock=self.clock, observers=self.observers)

    def queue_to_fill(self, name: str) -> Queue:
        """The same for an add: a queue that is new is looked for at once."""
        if name not in self._filled:
            self._filled.add(name)
            self.feeder.nudge()
        return self.queue(name)

    async def cursors(self) -> Cursors:
        """Of streams of several queues; all servers on these records read each other's."""
        if self._cursors is None:
            self._cursors = Cursors(await self.records.salts.get(SALT))
        return self._cursors

    def nudge_webhooks(self) -> None:
        """Somebody is to be told of something: look at once."""
        self.follower.nudge()
        if self.deliverer is not None:
            self.deliverer.nudge()

    async def forget(self) -> None:
        """Drop what was kept long enough: entries of the audit log, answers to requests of long ago."""
        before_ms = self.clock.now_ms() - self.settings.audit_days * _DAY_MS
        await self.records.audit.forget(before_ms=before_ms)
        await self.records.idempotency.forget()

    async def start(self) -> None:
        """Begin what goes on beside requests; BadOption if that would let strangers in."""
        if not self.settings.is_loopback and await self.access.is_open():
            raise BadOption(
                f"host: {self.settings.host} can be reached by others, and nobody needs to say who they are yet;"
                " first `bullpen keys create` or `bullpen users create`, or set BULLPEN_JWKS_URL"
            )
        self.feeder.start()
        self.relay.start()
        self.follower.start()
        if self.deliverer is not None:
            self.deliverer.start()
        self.chores.start()

    async def provider_health(self) -> dict[str, Health]:
        """How providers of models are doing, those of the table and all that workers asked, by name."""
        return await all_health(self.records.providers, (one.provider for one in self.agents.models.models.values()))

    async def stop(self) -> None:
        """Safe to call twice."""
        await self.chores.stop()
        await self.desk.close()
        await self.hub.stop()
        await self.lookout.stop()
        if self._has_own_agents:
            await self.agents.close()
        if self.deliverer is not None:
            await self.deliverer.stop()
        await self.follower.stop()
        await self.relay.stop()
        await self.feeder.stop()


def _agents_of(store: Store, records: Records, codec: Codec | None, relay: OutboxRelay, observers: Observers) -> Agents:
    """They ask, and do nothing: that is for workers, who know their tools."""
    return Agents(Bullpen(store, codec=codec, telemetry=observers), records, tools=None, relay=relay)


def _lease_to_forget(records: Records) -> TurnLease:
    return TurnLease(records.database, "forget", hold_ms=_FORGET_EVERY_S * 1_000)


def site_of(connection: HTTPConnection) -> Site:
    site: Site = connection.app.state.site
    return site


@contextlib.asynccontextmanager
async def opened_site(
    where: Bullpen | Store | str | None,
    records: Records | str | None,
    settings: ServerSettings,
    *,
    agents: Agents | None = None,
) -> AsyncIterator[Site]:
    """A site on this store and these records, from opening to closing all of it.

    An application is its owner's, who may go on working with it: the site has a store of its own beside it.
    """
    if agents is not None:
        await agents.pen.ready()
        where = agents.pen if where is None else where
    codec, observers = (where.codec, where.telemetry) if isinstance(where, Bullpen) else (None, None)
    store = where.store.another() if isinstance(where, Bullpen) else where
    if store is None or isinstance(store, str):
        store = store_from(store)
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(store.close)
        await store.open()
        if agents is not None and records is None:
            records = await agents.records()  # theirs to close
        elif not isinstance(records, Records):
            records = await Records.open(records)
            closing.push_async_callback(records.close)
        else:
            closing.push_async_callback(records.close)
        site = Site(store, records, settings, codec=codec, observers=observers, agents=agents)
        closing.push_async_callback(site.stop)
        await site.start()
        yield site
