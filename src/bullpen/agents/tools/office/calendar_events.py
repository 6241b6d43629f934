"""Events as iCalendar text (RFC 5545), written and read."""

import datetime as dt
import math
import zoneinfo
from collections.abc import Iterable, Mapping
from typing import Any

import icalendar
import recurring_ical_events  # type: ignore[import-untyped]  # it has no types
from msgspec import Struct

from bullpen.agents.tools.office.calendar_action import Listed, NewEvent
from bullpen.agents.tools.office.files import plain
from bullpen.errors import ToolError

_MOST_LISTED = 200
_LONGEST = dt.timedelta(days=366 * 2)
_OFTEN = {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}
_MADE = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""When an event was made, as far as it says: the same text comes of the same call."""


class Span(Struct, frozen=True):
    since: dt.datetime
    until: dt.datetime

    @property
    def since_utc(self) -> str:
        return _utc(self.since)

    @property
    def until_utc(self) -> str:
        return _utc(self.until)


def span(since: str, until: str, timezone: str) -> Span:
    begin, end = (_moment(_when(text, field, timezone)) for text, field in ((since, "since"), (until, "until")))
    if not begin < end:
        raise ToolError("until: is later than since")
    if end - begin > _LONGEST:
        raise ToolError(f"until: at most {_LONGEST.days} days after since")
    return Span(begin, end)


def written(event: NewEvent, uid: str, timezone: str) -> bytes:
    """ToolError names the field of what is no time, or no rule."""
    zone = event.timezone or timezone
    start = _when(event.start, "event.start", zone)
    end = _when(event.end, "event.end", zone)
    if isinstance(start, dt.datetime) != isinstance(end, dt.datetime):
        raise ToolError("event.end: start and end are both days, or both times")
    if not _moment(start) < _moment(end):
        raise ToolError("event.end: is later than event.start")
    made = icalendar.Event()
    made.add("uid", uid)
    made.add("dtstamp", _MADE)
    made.add("dtstart", start)
    made.add("dtend", end)
    for name, text in (("summary", event.title), ("location", event.location), ("description", event.description)):
        if text:
            made.add(name, plain(text))
    if event.repeats:
        made.add("rrule", _rule(event.repeats))
    calendar = icalendar.Calendar()
    calendar.add("prodid", "-//bullpen//calendar_action//EN")
    calendar.add("version", "2.0")
    calendar.add_component(made)
    calendar.add_missing_timezones()
    return bytes(calendar.to_ical())


def listed(files: Iterable[bytes], time: Span) -> tuple[tuple[Listed, ...], bool]:
    """The events of that time in order, each repetition by itself, and whether there are more than are listed."""
    found = [one for data in files for one in _in(data, time)]
    found.sort(key=lambda one: (_moment(one.start), one.get("uid", "")))
    return tuple(map(_shown, found[:_MOST_LISTED])), len(found) > _MOST_LISTED


def uids(data: bytes) -> set[str]:
    try:
        return {str(event.get("uid", "")) for event in icalendar.Calendar.from_ical(data).walk("VEVENT")}
    except (ValueError, KeyError, IndexError):
        return set()


def _in(data: bytes, time: Span) -> list[icalendar.Event]:
    try:
        calendar = icalendar.Calendar.from_ical(data)
        _drop_wild_rules(calendar)
        found = recurring_ical_events.of(calendar, skip_bad_series=True).between(time.since, time.until)
    except (ValueError, KeyError, IndexError):
        return []  # another program's, which cannot be read: the others still are
    return [event for event in found if isinstance(event, icalendar.Event)]


def _drop_wild_rules(calendar: icalendar.Component) -> None:
    """An event that repeats each second would be millions: it is listed once."""
    for event in calendar.walk("VEVENT"):
        rules = event.get("rrule", [])
        if any(_is_wild(rule) for rule in (rules if isinstance(rules, list) else [rules])):
            del event["rrule"]


def _is_wild(rule: Mapping[str, Any]) -> bool:
    """Whether it may come more often than each hour of a day."""
    a_day = math.prod(len(rule.get(part) or [0]) for part in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    return str((rule.get("FREQ") or [""])[0]).upper() not in _OFTEN or a_day > 24


def _shown(event: icalendar.Event) -> Listed:
    return Listed(
        uid=str(event.get("uid", "")),
        title=str(event.get("summary", ""))[:500],
        start=event.start.isoformat(),
        end=event.end.isoformat(),
        location=str(event.get("location", ""))[:500],
        description=str(event.get("description", ""))[:1_000],
    )


def _when(text: str, field: str, timezone: str) -> dt.date | dt.datetime:
    try:
        if len(text) == 10:
            return dt.date.fromisoformat(text)
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ToolError(f"{field}: {text!r} is no time such as 2026-03-01T09:30, and no day") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=_zone(timezone))


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolError(f"timezone: there is no {name!r}; such as Europe/Zurich") from None


def _moment(when: dt.date | dt.datetime) -> dt.datetime:
    """To compare by: a day begins at midnight in UTC."""
    if not isinstance(when, dt.datetime):
        return dt.datetime.combine(when, dt.time(), dt.UTC)
    return when if when.tzinfo is not None else when.replace(tzinfo=dt.UTC)


def _utc(when: dt.datetime) -> str:
    return when.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")


def _rule(text: str) -> icalendar.vRecur:
    try:
        rule: icalendar.vRecur = icalendar.vRecur.from_ical(text.removeprefix("RRULE:"))
    except ValueError as error:
        raise ToolError(f"event.repeats: {str(error)[:200]}") from None
    if _is_wild(rule):
        raise ToolError("event.repeats: needs FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, at most 24 times a day")
    return rule
