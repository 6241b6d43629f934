"""The job types that deliver: events to webhooks, and alerts.

Each delivery is a job of its own, with attempts of its own: what it tells of is not touched by how
that goes. The secret is read from the records for each attempt, and is nowhere else.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec

from bullpen.app import Bullpen
from bullpen.builtin import signing
from bullpen.builtin.alerting import body_of, url_of
from bullpen.builtin.messages import ALERT, DELIVER, QUEUE, TEST
from bullpen.builtin.outgoing import Outgoing
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import CallFailed, RecordMissing, Unrecoverable
from bullpen.observing import Observer, Serving
from bullpen.records.records import Records
from bullpen.worker.context import Context

DELIVERY_HEADER = "X-Bullpen-Delivery"
EVENT_HEADER = "X-Bullpen-Event"
_AGAIN = frozenset({408, 409, 425, 429})
"""Of all 4xx, those that another attempt may mend."""
_SHOWN = 300
"""Of what a receiver answers, so much is kept in the job's log."""
_USUAL = {"Content-Type": "application/json", "User-Agent": "Bullpen-Webhooks"}


class Deliveries(Observer):
    """Declares the job types on an application, for workers that serve the queue `bullpen-webhooks`.

        pen = Bullpen("redis://localhost")
        Deliveries("postgresql://…").declare(pen)

    Records that are given by their address, or that `BULLPEN_RECORDS` names, are opened with the
    first delivery and closed when the worker ends.
    """

    def __init__(self, records: Records | str | None = None, outgoing: Outgoing | None = None) -> None:
        self._given = records
        self._opened: Records | None = None
        self._opening = asyncio.Lock()
        self._outgoing = outgoing or Outgoing()

    def declare(self, pen: Bullpen) -> None:
        pen.job(queue=QUEUE, name=DELIVER)(self.deliver)
        pen.job(queue=QUEUE, name=ALERT)(self.alert)
        pen.telemetry.append(self)

    @contextlib.asynccontextmanager
    async def serving(self, worker: Serving) -> AsyncIterator[None]:  # noqa: ARG002 - an observer's word
        try:
            yield
        finally:
            opened, self._opened = self._opened, None
            if opened is not None:
                await opened.close()

    # ── the handlers ─────────────────────────────────────────────────────────────────────

    async def deliver(self, ctx: Context, subscription: str, event: dict[str, Any]) -> dict[str, Any]:
        """Tell one subscription of one event."""
        records = await self._records()
        kind = str(event["kind"])
        try:
            webhook = await records.webhooks.get(subscription)
            secret = await records.webhooks.secret(subscription)
        except RecordMissing:
            return _unsent(ctx, "the webhook was removed")
        if not webhook.is_enabled and kind != TEST:
            return _unsent(ctx, "the webhook is off")
        if webhook.tenant != ctx.tenant:
            raise Unrecoverable("the webhook is another tenant's")
        body = msgspec.json.encode({"delivery": ctx.id, "webhook": webhook.id, **event})
        signature = signing.sign(secret, SYSTEM_CLOCK.now_ms() // 1000, body)
        return await self._post(ctx, webhook.url, body, {signing.HEADER: signature, EVENT_HEADER: kind})

    async def alert(self, ctx: Context, alert: str, failed: int, event: dict[str, Any]) -> dict[str, Any]:
        """Tell the channel of an alert that so many jobs have failed."""
        try:
            setting = await (await self._records()).alerts.get(alert)
        except RecordMissing:
            return _unsent(ctx, "the alert was removed")
        url = url_of(setting)
        if not setting.is_enabled or url is None:
            return _unsent(ctx, "the alert is off, or names no webhook")
        if setting.tenant != ctx.tenant:
            raise Unrecoverable("the alert is another tenant's")
        return await self._post(ctx, url, body_of(setting, ctx.id, failed, event), {EVENT_HEADER: ALERT})

    async def _post(self, ctx: Context, url: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
        """Until it is taken: CallFailed to try again, Unrecoverable where that cannot help."""
        answer = await self._outgoing.call(
            "POST", url, headers=_USUAL | headers | {DELIVERY_HEADER: ctx.id}, content=body
        )
        ctx.log(f"attempt {ctx.attempt}: {answer.status} after {answer.took_ms} ms: {_shown(answer.body)}")
        if 200 <= answer.status < 300:
            return {"sent": True, "status": answer.status, "took_ms": answer.took_ms}
        said = f"{httpx.URL(url).host} answered {answer.status}"
        if answer.status >= 500 or answer.status in _AGAIN:
            raise CallFailed(said, retry_after=answer.retry_after_s(SYSTEM_CLOCK.now_ms()))
        # A redirect too: a body that is signed for one address is not carried to another.
        raise Unrecoverable(said)

    async def _records(self) -> Records:
        if isinstance(self._given, Records):
            return self._given
        async with self._opening:
            if self._opened is None:
                self._opened = await Records.open(self._given)
            return self._opened


def _unsent(ctx: Context, reason: str) -> dict[str, Any]:
    ctx.log(f"not sent: {reason}")
    return {"sent": False, "reason": reason}


def _shown(body: bytes) -> str:
    text = body[:_SHOWN].decode(errors="replace")
    return "".join(sign if sign.isprintable() else " " for sign in text)
