"""The health of providers in the records, where all workers find what one of them found out.

It is advice: while the records do not answer, a worker goes by what it knows itself, and no call fails for want of it.
"""

import logging
from collections.abc import Iterable

import msgspec

from bullpen.agents.llm.health import HEALTHY, Changed, Health, Step
from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import RecordsUnavailable
from bullpen.records.providers import Providers

FRESH_MS = 1_000

logger = logging.getLogger("bullpen.agents")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Health).decode


class _Seen(msgspec.Struct, frozen=True):
    health: Health
    mono_ms: int


class HealthInRecords:
    """For all workers on these records. What was read counts for `fresh_ms`: a call of a model asks several times."""

    def __init__(self, providers: Providers, *, fresh_ms: int = FRESH_MS, clock: Clock = SYSTEM_CLOCK) -> None:
        self._providers = providers
        self._fresh_ms = fresh_ms
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    async def read(self, provider: str) -> Health:
        seen = self._seen.get(provider)
        if seen is not None and self._clock.mono_ms() - seen.mono_ms < self._fresh_ms:
            return seen.health
        try:
            return self._note(provider, _read(await self._providers.health(provider)))
        except RecordsUnavailable:
            return HEALTHY if seen is None else seen.health

    async def change(self, provider: str, step: Step) -> Changed:
        known = await self.read(provider)
        if step(known) == known:  # as most calls find it: nothing is written for an answer of one in health
            return Changed(known, known)
        changed = Changed(known, step(known))

        def rewrite(written: bytes) -> bytes:
            nonlocal changed
            before = _read(written)
            changed = Changed(before, step(before))
            return _encode(changed.after)

        try:
            await self._providers.change(provider, rewrite)
        except RecordsUnavailable as error:
            logger.warning("how provider %s is doing is known here only: %s", provider, error)
        self._note(provider, changed.after)
        return changed

    def _note(self, provider: str, health: Health) -> Health:
        self._seen[provider] = _Seen(health, self._clock.mono_ms())
        return health


async def all_health(providers: Providers, names: Iterable[str]) -> dict[str, Health]:
    """Of these and of all that somebody wrote of, as they are on record, by name."""
    written = await providers.all()
    return {name: _read(written.get(name, b"")) for name in sorted({*names, *written})}


def _read(written: bytes) -> Health:
    """HEALTHY where nothing is known, or where a newer worker wrote what this one cannot read."""
    try:
        return _decode(written) if written else HEALTHY
    except msgspec.DecodeError:
        return HEALTHY
