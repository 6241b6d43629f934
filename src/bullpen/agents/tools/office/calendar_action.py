"""`calendar_action`: makes, lists and removes events in a calendar of the operator's."""

import asyncio
import hashlib
import importlib
import zoneinfo
from typing import Annotated, Literal, Protocol, TypeVar

from msgspec import Meta, Struct

from bullpen.agents.tools.office.files import needs
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.errors import BadOption, ToolError

T = TypeVar("T")

Words = Annotated[str, Meta(max_length=500)]
When = Annotated[
    str, Meta(max_length=40, description="2026-03-01T09:30 or 2026-03-01T09:30+01:00; 2026-03-01 for whole days.")
]


class NewEvent(Struct, frozen=True, forbid_unknown_fields=True):
    title: Annotated[str, Meta(min_length=1, max_length=500)]
    start: When
    end: Annotated[str, Meta(max_length=40, description="When it is over; of whole days the day after the last one.")]
    timezone: Annotated[str, Meta(max_length=60, description="Such as Europe/Zurich, for times without an offset.")] = (
        ""
    )
    location: Words = ""
    description: Annotated[str, Meta(max_length=10_000)] = ""
    repeats: Annotated[str, Meta(max_length=200, description="An RRULE, such as FREQ=WEEKLY;COUNT=10.")] = ""


class Listed(Struct, frozen=True, omit_defaults=True):
    uid: str
    title: str
    start: str
    end: str
    location: str = ""
    description: str = ""


class Done(Struct, frozen=True, omit_defaults=True):
    uid: str = ""
    events: tuple[Listed, ...] = ()
    more: bool = False
    """There are events in this time that are not listed."""
    was_there: bool = True
    """Of a deletion: whether there was one to remove."""


class Calendar(Protocol):
    """Where events are kept, as iCalendar text."""

    async def put(self, uid: str, data: bytes) -> None:
        """Keep it under this id; what is there already stays."""

    async def between(self, since: str, until: str) -> list[bytes]:
        """Files with events that may fall between two times in UTC, `20260301T000000Z`."""

    async def remove(self, uid: str) -> bool:
        """Whether it was there."""


Action = Annotated[Literal["create", "list", "delete"], Meta(description="What to do.")]
Event = Annotated[NewEvent, Meta(description="To create.")]
Since = Annotated[str, Meta(max_length=40, description="List events from this time on, such as 2026-03-01T00:00Z.")]
Until = Annotated[str, Meta(max_length=40, description="List events up to this time.")]
Uid = Annotated[str, Meta(min_length=1, max_length=255, description="To delete, as it was listed.")]


def calendar_action(calendar: Calendar, *, timezone: str = "UTC") -> Tool:
    """A tool for one calendar. An event's id comes of the call's key, so that a repeated call makes no second one.

    `timezone` is that of times which say none; BadOption if there is none of that name.
    """
    try:
        zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise BadOption(f"timezone: there is no {timezone!r}; such as Europe/Zurich") from None

    @tool(name="calendar_action", policy=Policy.IDEMPOTENT)
    async def act(
        context: ToolContext,
        action: Action,
        event: Event | None = None,
        since: Since | None = None,
        until: Until | None = None,
        uid: Uid | None = None,
    ) -> Done:
        """Create, list or delete events of the calendar: `create` takes event, `list` since and until, `delete` uid."""
        with needs("icalendar and recurring-ical-events"):
            # By a thread, for it takes a while; after that it is at hand.
            await asyncio.to_thread(importlib.import_module, "bullpen.agents.tools.office.calendar_events")
            from bullpen.agents.tools.office.calendar_events import listed, span, written
        match action:
            case "create":
                new = _given(event, "event", action)
                own = event_uid(context.key)
                await calendar.put(own, await asyncio.to_thread(written, new, own, timezone))
                return Done(own)
            case "list":
                time = span(_given(since, "since", action), _given(until, "until", action), timezone)
                files = await calendar.between(time.since_utc, time.until_utc)
                found, more = await asyncio.to_thread(listed, files, time)
                return Done(events=found, more=more)
            case "delete":
                gone = _given(uid, "uid", action)
                return Done(gone, was_there=await calendar.remove(gone))

    return act


def event_uid(key: str) -> str:
    return f"{hashlib.sha256(key.encode()).hexdigest()[:40]}@bullpen"


def _given(value: T | None, field: str, action: str) -> T:
    if value is None:
        raise ToolError(f"{field}: the action {action!r} needs it")
    return value
