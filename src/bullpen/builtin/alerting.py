"""Alerts: what their settings ask for, and what their channel is told.

    condition  {"failed": 10, "minutes": 5, "queue": "mail"}     the last two need not be there
    channel    {"webhook": "https://…"}                          JSON for programs
               {"slack": "https://…"}                            a text, as Slack and its kin take it

Time is cut into stretches of so many minutes. In each, the alert is told once: when so many jobs
have failed for good in it. A setting of another shape is kept, and tells nobody.
"""

from typing import Any

import msgspec

from bullpen.records.sealing import SEALED
from bullpen.records.settings import SLACK, AlertSetting

_MINUTE_MS = 60_000
_MAX_MINUTES = 10_080
_MAX_FAILED = 1_000_000
WEBHOOK = "webhook"


class Condition(msgspec.Struct, frozen=True):
    failed: int
    window_ms: int
    queue: str | None


def condition_of(alert: AlertSetting) -> Condition | None:
    """None for one that we cannot tell."""
    given = alert.condition
    failed, minutes, queue = given.get("failed"), given.get("minutes", 1), given.get("queue")
    is_known = _is_whole(failed, _MAX_FAILED) and _is_whole(minutes, _MAX_MINUTES) and isinstance(queue, str | None)
    if not is_known or url_of(alert) is None or given.keys() - {"failed", "minutes", "queue"}:
        return None
    return Condition(int(given["failed"]), int(minutes) * _MINUTE_MS, queue)


def url_of(alert: AlertSetting) -> str | None:
    for kind in (WEBHOOK, SLACK):
        url = alert.channel.get(kind)
        # One that is encrypted with another key is an address too: whoever delivers has to have the key.
        if isinstance(url, str) and url.startswith(("https://", "http://", SEALED)):
            return url
    return None


def body_of(alert: AlertSetting, delivery: str, failed: int, event: dict[str, Any]) -> bytes:
    """For the channel: JSON, or a text."""
    if WEBHOOK in alert.channel:
        known: dict[str, Any] = {"delivery": delivery, "alert": alert.id, "name": alert.name, "failed": failed}
        return msgspec.json.encode(known | {"last": event})
    failure = event.get("failure") or {}
    job = f"{event.get('name') or 'job'} {event.get('job_id')} of {event.get('queue')}"
    many = "1 job has" if failed == 1 else f"{failed:,} jobs have"
    return msgspec.json.encode({"text": f"{alert.name}: {many} failed. The last: {job}: {failure.get('message', '')}"})


def _is_whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
