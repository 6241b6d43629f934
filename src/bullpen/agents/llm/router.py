"""From a model's name to whoever answers: its provider, or the next in the order of fallbacks."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

import msgspec

from bullpen.agents.llm.allowance import Allowance
from bullpen.agents.llm.deltas import Delta, Restarted, Started
from bullpen.agents.llm.health import Health, HealthInMemory, HealthRecords, HealthRules, Standing
from bullpen.agents.llm.measuring import Measured
from bullpen.agents.llm.models import Model, ModelTable
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.retrying import Came, Retrying, RetryRules, Sleep
from bullpen.agents.llm.words import Request, check_request
from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import (
    CallRefused,
    ContentRefused,
    ContextTooLong,
    ModelAccess,
    ModelError,
    ModelLimited,
    ModelUnknown,
    ProvidersDown,
)
from bullpen.observing import Observers

logger = logging.getLogger("bullpen.agents")


class Router:
    """All models of a table as one provider."""

    name = "router"

    def __init__(
        self,
        providers: Iterable[Provider],
        models: ModelTable,
        *,
        retries: RetryRules | None = None,
        health: HealthRecords | None = None,
        health_rules: HealthRules | None = None,
        observers: Observers | None = None,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Sleep = asyncio.sleep,
        vary: Callable[[], float] = random.random,
    ) -> None:
        self.models = models
        self._providers = {provider.name: provider for provider in providers}
        self._retries = retries or RetryRules()
        self._health: HealthRecords = health or HealthInMemory()
        self._rules = health_rules or HealthRules()
        self._observers = Observers() if observers is None else observers
        self._clock = clock
        self._sleep = sleep
        self._vary = vary

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The answer of the first that gives one; Started says which. ModelUnknown, ModelAccess,
        ProvidersDown or its own error.
        """
        check_request(request)
        waiting = await self._candidates(request.model)
        while waiting:
            model, *waiting = waiting
            came = Came()
            try:
                async with contextlib.aclosing(self._asked(model).stream(model.fitted(request))) as deltas:
                    async for delta in deltas:
                        yield came.note(_as_ours(delta, model))
            except ModelError as error:
                waiting = [other for other in waiting if _may_do_better(other, model, error)]
                if not waiting or not self._retries.allows(error, has_words=came.words):
                    raise
                reason = str(error)
            else:
                return
            logger.warning("%s does not answer, asking %s: %s", model.name, waiting[0].name, reason)
            if came.anything:
                yield Restarted(reason)

    def serves(self, model: str) -> bool:
        """Whether a provider of a model, or of one to fall back to, is here."""
        try:
            order = self.models.order(model)
        except ModelUnknown:
            return False
        return any(one.provider in self._providers for one in order)

    async def check(self, model: str) -> None:
        """ProvidersDown if nobody who could answer for a model is in health; whose probe is due is probed first.

        ModelLimited if whoever is in health has enough for now. ModelUnknown, ModelAccess.
        """
        there = dict.fromkeys(one.provider for one in self._order(model))
        if await self._has_free(there):
            return
        for name in there:
            if await self._takes_probe(name):
                await self._probe(name, self._providers[name])
        await self._candidates(model)
        if not await self._has_free(there):
            raise await self._limited(model, there)

    async def _has_free(self, names: Iterable[str]) -> bool:
        """Whether one of these is in health and has not enough."""
        now_ms = self._clock.now_ms()
        for name in names:
            health = await self._health.read(name)
            if health.standing != Standing.DOWN and not health.is_limited(now_ms):
                return True
        return False

    async def _limited(self, model: str, names: Iterable[str]) -> ModelLimited:
        """For the one of these that may be asked first."""
        at_ms, name = min([((await self._health.read(name)).may_be_asked_at_ms(), name) for name in names])
        left_s = max(0, at_ms - self._clock.now_ms()) / 1000
        return ModelLimited(f"{model}: {name} has enough for now", provider=name, model=model, retry_after=left_s)

    async def probe(self) -> None:
        """Find out about each provider that was not well and whose time has come; call it every minute."""
        for name, provider in self._providers.items():
            if await self._takes_probe(name):
                await self._probe(name, provider)

    async def _takes_probe(self, name: str) -> bool:
        """Whether it is for this one to find out: of several that see that it is due, one changes the time."""
        now_ms = self._clock.now_ms()
        taken = await self._health.change(
            name, lambda health: health.taken_for_probe(now_ms, self._rules) if health.is_probe_due(now_ms) else health
        )
        return taken.after != taken.before

    async def _probe(self, name: str, provider: Provider) -> None:
        failure: ModelError | None = None
        try:
            await provider.probe()
        except ModelError as error:
            failure = error
        now_ms = self._clock.now_ms()
        found = await self._health.change(name, lambda health: health.after_probe(failure, now_ms, self._rules))
        logger.info("provider %s is %s after a probe", name, found.after.standing)

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()

    async def _candidates(self, name: str) -> Sequence[Model]:
        """Who may be asked, those in health first, else in the table's order."""
        order = self._order(name)
        now_ms = self._clock.now_ms()
        standing = {model.provider: await self._health.read(model.provider) for model in order}
        able = [model for model in order if _may_be_asked(standing[model.provider], now_ms)]
        if not able:
            back_ms = min(health.probe_at_ms for health in standing.values()) - now_ms
            reasons = "; ".join(health.reason for health in standing.values())
            raise ProvidersDown(
                f"{name}: no provider of it is in health: {reasons}", model=name, retry_after=back_ms / 1000
            )
        return sorted(able, key=lambda model: _reluctance(standing[model.provider], now_ms))

    def _order(self, name: str) -> Sequence[Model]:
        """The models to ask for this one whose providers are here."""
        order = [model for model in self.models.order(name) if model.provider in self._providers]
        if not order:
            provider = self.models.model(name).provider
            raise ModelAccess(f"model: {name!r} needs the provider {provider!r}, which is not set up here", model=name)
        return order

    def _asked(self, model: Model) -> Provider:
        watched: Provider = _Watched(self._providers[model.provider], self._health, self._rules, self._clock)
        if self._observers:
            watched = Measured(watched, model.name, self._observers)
        return Retrying(watched, self._retries, sleep=self._sleep, vary=self._vary)


class _Watched:
    """A provider whose health is judged by each call."""

    def __init__(self, provider: Provider, records: HealthRecords, rules: HealthRules, clock: Clock) -> None:
        self._provider = provider
        self._records = records
        self._rules = rules
        self._clock = clock

    @property
    def name(self) -> str:
        return self._provider.name

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        await self._records.change(self.name, self._taken_if_down)
        try:
            async with contextlib.aclosing(self._provider.stream(request)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Started) and delta.allowance is not None:
                        await self._heed(delta.allowance, request.max_tokens)
                    yield delta
        except ModelError as error:
            await self._judge(error)
            raise
        await self._judge(None)

    def _taken_if_down(self, health: Health) -> Health:
        if health.standing != Standing.DOWN:
            return health
        return health.taken_for_probe(self._clock.now_ms(), self._rules)

    async def _heed(self, allowance: Allowance, needs_tokens: int) -> None:
        """Let nobody ask who would be refused, as far as the headers of an answer tell."""
        now_ms = self._clock.now_ms()
        hold_ms = round(1000 * allowance.hold_s(now_ms, needs_tokens=needs_tokens))
        if hold_ms > 0:
            await self._records.change(self.name, lambda health: health.after_limit(now_ms + hold_ms))
            logger.warning("provider %s has enough for %.1f s", self.name, hold_ms / 1000)

    async def _judge(self, error: ModelError | None) -> None:
        now_ms = self._clock.now_ms()

        def judged(health: Health) -> Health:
            return health.after_answer(now_ms) if error is None else health.after_error(error, now_ms, self._rules)

        before, after = await self._records.change(self.name, judged)
        if after.standing != before.standing:
            logger.warning("provider %s is %s, it was %s", self.name, after.standing, before.standing)

    async def probe(self) -> None:
        await self._provider.probe()

    async def close(self) -> None:
        await self._provider.close()


def _as_ours(delta: Delta, model: Model) -> Delta:
    """A price is looked up by the table's name, not by the provider's."""
    if isinstance(delta, Started):
        return msgspec.structs.replace(delta, model=model.name, provider=model.provider)
    return delta


def _may_be_asked(health: Health, now_ms: int) -> bool:
    return health.standing != Standing.DOWN or health.is_probe_due(now_ms)


def _reluctance(health: Health, now_ms: int) -> int:
    if health.standing == Standing.DOWN:
        return 3
    if health.is_limited(now_ms):
        return 2
    return int(health.standing == Standing.DEGRADED)


def _may_do_better(other: Model, failed: Model, error: ModelError) -> bool:
    """Whether another model could answer what this one did not."""
    if isinstance(error, ContextTooLong):
        return other.context_window > failed.context_window
    if isinstance(error, ModelAccess):
        return other.provider != failed.provider
    return not isinstance(error, CallRefused | ContentRefused)
