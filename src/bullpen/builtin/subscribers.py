"""Who is to be told of an event: webhooks and alerts as they are set at this moment."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bullpen.builtin.alerting import Condition, condition_of
from bullpen.builtin.messages import QUEUE
from bullpen.job.events import Event, EventKind
from bullpen.job.record import FailureKind
from bullpen.records.records import Records
from bullpen.records.settings import AlertSetting
from bullpen.records.webhooks import Webhook

_SLACK_MS = 10_000
"""The clock of an event log and that of the records may differ by so much; who has just
subscribed may hear of the moments before, and misses nothing after."""


class Watch(msgspec.Struct, frozen=True):
    """An alert that is on, and that we can tell."""

    alert: AlertSetting
    condition: Condition

    def counts(self, queue: str, event: Event, name: str | None) -> bool:
        """Whether this is one more job that failed for good; one that was cancelled did not."""
        return (
            event.kind is EventKind.FAILED
            and (event.failure is None or event.failure.kind != FailureKind.CANCELLED)
            and self.condition.queue in (None, queue)
            and self.condition.name in (None, name)
            and self.alert.tenant in (None, event.tenant)
            and event.at_ms >= self.alert.changed_ms - _SLACK_MS
        )

    def window_of(self, event: Event) -> int:
        """The stretch of time that it falls in, by its beginning."""
        return event.at_ms - event.at_ms % self.condition.window_ms


class Subscribers(msgspec.Struct, frozen=True):
    webhooks: Mapping[str | None, Sequence[Webhook]]
    """By tenant, so that an event is not held against those of all others."""
    watches: Sequence[Watch]

    @classmethod
    async def load(cls, records: Records) -> "Subscribers":
        webhooks: dict[str | None, list[Webhook]] = {}
        for webhook in await records.webhooks.list(only_enabled=True):
            webhooks.setdefault(webhook.tenant, []).append(webhook)
        alerts = [alert for alert in await records.alerts.list() if alert.is_enabled]
        known = ((alert, condition_of(alert)) for alert in alerts)
        return cls(webhooks, [Watch(alert, condition) for alert, condition in known if condition is not None])

    @property
    def named_queues(self) -> set[str] | None:
        """All that anybody wants to hear of; None if somebody wants to hear of all."""
        named: set[str] = set()
        for wanted in self._wants():
            if wanted is None:
                return None
            named |= set(wanted)
        return named - {QUEUE}

    def _wants(self) -> Iterable[Sequence[str] | None]:
        yield from (webhook.queues for some in self.webhooks.values() for webhook in some)
        yield from (None if watch.condition.queue is None else [watch.condition.queue] for watch in self.watches)

    def of(self, queue: str, event: Event) -> list[Webhook]:
        """Those that are to be told of this event; of what has a tenant, no other tenant hears."""
        found = [webhook for webhook in self.webhooks.get(None, ()) if _hears(webhook, queue, event)]
        if event.tenant is not None:
            found += [webhook for webhook in self.webhooks.get(event.tenant, ()) if _hears(webhook, queue, event)]
        return found


def _hears(webhook: Webhook, queue: str, event: Event) -> bool:
    return (
        event.kind in webhook.kinds
        and (webhook.queues is None or queue in webhook.queues)
        and event.at_ms >= webhook.since_ms - _SLACK_MS
    )
