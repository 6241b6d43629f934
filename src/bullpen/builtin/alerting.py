"""Alerts: what their settings ask for, and what their channel is told.

    condition  {"failed": 10, "minutes": 5, "queue": "mail", "name": "welcome", "severity": "high"}
               all but `failed` need not be there
    channel    {"webhook": "https://…"}                          JSON for programs
               {"slack": "https://…"}                            a text, as Slack and its kin take it

Time is cut into stretches of so many minutes. In each, the alert is told once: when so many jobs
have failed for good in it. A channel of another shape is kept, and tells nobody.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from bullpen.errors import BadOption
from bullpen.records.sealing import SEALED
from bullpen.records.settings import SLACK, AlertSetting

_MINUTE_MS = 60_000
_MAX_MINUTES = 10_080
_MAX_FAILED = 1_000_000
WEBHOOK = "webhook"


SEVERITIES = ("warning", "high")
_KEYS = ("failed", "minutes", "queue", "name", "severity")


class Condition(msgspec.Struct, frozen=True):
    failed: int
    window_ms: int
    queue: str | None
    name: str | None
    """Of the jobs that count; None: all."""
    severity: str | None


def condition_of(alert: AlertSetting) -> Condition | None:
    """None for one that we cannot tell."""
    try:
        return None if url_of(alert) is None else read_condition(alert.condition)
    except BadOption:
        return None


def read_condition(given: Mapping[str, Any]) -> Condition:
    """BadOption for one that would tell nobody."""
    if unknown := sorted(given.keys() - set(_KEYS)):
        raise BadOption(f"condition: has {', '.join(_KEYS)}, and no {', '.join(map(repr, unknown))}")
    failed, minutes = given.get("failed"), given.get("minutes", 1)
    queue, name, severity = (given.get(key) for key in ("queue", "name", "severity"))
    _check_whole("failed", failed, _MAX_FAILED)
    _check_whole("minutes", minutes, _MAX_MINUTES)
    for key, value in (("queue", queue), ("name", name)):
        if not isinstance(value, str | None) or value == "":
            raise BadOption(f"condition: {key} is a name, not {value!r}")
    if severity not in (None, *SEVERITIES):
        raise BadOption(f"condition: severity is one of {', '.join(SEVERITIES)}, not {severity!r}")
    return Condition(int(given["failed"]), int(minutes) * _MINUTE_MS, queue, name, severity)


def url_of(alert: AlertSetting) -> str | None:
    for kind in (WEBHOOK, SLACK):
        url = alert.channel.get(kind)
        # One that is encrypted with another key is an address too: whoever delivers has to have the key.
        if isinstance(url, str) and url.startswith(("https://", "http://", SEALED)):
            return url
    return None


def body_of(alert: AlertSetting, delivery: str, failed: int, event: dict[str, Any]) -> bytes:
    """For the channel: JSON, or a text."""
    severity = alert.condition.get("severity")
    if WEBHOOK in alert.channel:
        known: dict[str, Any] = {"delivery": delivery, "alert": alert.id, "name": alert.name, "failed": failed}
        return msgspec.json.encode(known | ({"severity": severity} if severity else {}) | {"last": event})
    failure = event.get("failure") or {}
    job = f"{event.get('name') or 'job'} {event.get('job_id')} of {event.get('queue')}"
    many = "1 job has" if failed == 1 else f"{failed:,} jobs have"
    title = f"[{severity}] {alert.name}" if severity else alert.name
    return msgspec.json.encode({"text": f"{title}: {many} failed. The last: {job}: {failure.get('message', '')}"})


def _check_whole(key: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise BadOption(f"condition: {key} is a whole number from 1 to {most:,}, not {value!r}")
