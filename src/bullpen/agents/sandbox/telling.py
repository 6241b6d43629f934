"""What a worker tells of its pool in the records, so that an operator sees and restarts the pools of all workers."""

import logging
from collections.abc import Callable

import msgspec

from bullpen.agents.sandbox.pool import SandboxPool
from bullpen.errors import BullpenError
from bullpen.records.sandboxes import SandboxPools

_LOG = logging.getLogger("bullpen.agents.sandbox")

_encode = msgspec.json.Encoder().encode


class _Standing(msgspec.Struct, frozen=True):
    driver: str
    isolation: str
    sandboxes: "tuple[_Member, ...]" = ()


class _Member(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    state: str
    since_ms: int
    tenant: str | None = None


_decode = msgspec.json.Decoder(_Standing).decode


class SandboxShown(msgspec.Struct, frozen=True, kw_only=True):
    """A sandbox of any worker, as that told of it last."""

    id: str
    worker: str
    driver: str
    isolation: str
    """How strong its walls are: the name of a `Level`, in small letters."""
    state: str
    """`warm`: ready and unused; or `in use`."""
    tenant: str | None
    """Whose code is in it, while it is in use."""
    since_ms: int
    """When it came to be so."""
    told_ms: int


class PoolTelling:
    """Tells of the pool that a process has, if it has one."""

    def __init__(self, pools: SandboxPools, worker: str, pool_of: Callable[[], SandboxPool | None]) -> None:
        self._pools = pools
        self._worker = worker
        self._pool_of = pool_of
        self._told: str | None = None

    async def tell(self) -> None:
        """And restart it, if somebody asked for that."""
        if (pool := self._pool_of()) is None:
            return
        if self._told is None:
            await self._pools.forget()
        self._told = pool.name
        if await self._pools.tell(pool.name, self._worker, _encode(_standing(pool))):
            _LOG.info("the pool of sandboxes is restarted, as somebody asked")
            await pool.restart()

    async def leave(self) -> None:
        """The pool is closed; safe to call twice."""
        told, self._told = self._told, None
        if told is None:
            return
        try:
            await self._pools.remove(told)
        except BullpenError:
            _LOG.warning("a closed pool of sandboxes is still on record for a while", exc_info=True)


def _standing(pool: SandboxPool) -> _Standing:
    members = tuple(_Member(one.id, one.state, one.since_ms, one.tenant) for one in pool.list())
    return _Standing(pool.driver.name, pool.driver.level.name.lower(), members)


async def all_sandboxes(pools: SandboxPools) -> list[SandboxShown]:
    """Those of all workers that told of theirs lately, by worker."""
    return [
        SandboxShown(
            id=one.id,
            worker=told.worker,
            driver=standing.driver,
            isolation=standing.isolation,
            state=one.state,
            tenant=one.tenant,
            since_ms=one.since_ms,
            told_ms=told.told_ms,
        )
        for told in await pools.list()
        for standing in [_decode(told.standing)]
        for one in standing.sandboxes
    ]
