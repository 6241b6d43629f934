"""Events in a folder of files and on a real CalDAV server: the same for both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icalendar
import pytest

from bullpen.agents.tools.office import (
    CalDavSettings,
    Calendar,
    DavCalendar,
    FolderCalendar,
    caldav_from,
    calendar_action,
)
from bullpen.agents.tools.office.calendar_action import event_uid
from bullpen.agents.tools.policy import Policy
from bullpen.builtin.addresses import Allowed
from bullpen.errors import BadData, BadOption, ToolError
from tests.agents.tools.office.dav_server import PASSWORD, USER, DavServer, running_dav
from tests.agents.tools.office.kept import Kept

HERE = Allowed.parse("127.0.0.1")
MEETING = {"title": "Jour fixe — встреча", "start": "2026-03-02T09:30", "end": "2026-03-02T10:00"}
MARCH = {"action": "list", "since": "2026-03-01T00:00Z", "until": "2026-04-01T00:00Z"}
FOREIGN = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//somebody//else//EN
BEGIN:VEVENT
UID:other/../1@example.com
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20260310
DTEND;VALUE=DATE:20260311
SUMMARY:Of another program
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n").encode()


@pytest.fixture(scope="module")
def dav(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with running_dav(tmp_path_factory.mktemp("dav")) as server:
        yield server


class Place:
    """A calendar, and a way around the tool to put files into it."""

    def __init__(self, calendar: Calendar, dav: DavServer | None, folder: Path) -> None:
        self.calendar, self._dav, self._folder = calendar, dav, folder

    def add(self, name: str, data: bytes) -> None:
        if self._dav is not None:
            self._dav.send("PUT", name, data)
        else:
            (self._folder / name).write_bytes(data)


@pytest.fixture(params=["folder", "caldav"])
def place(request: pytest.FixtureRequest, dav: DavServer, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Place(FolderCalendar(tmp_path), None, tmp_path)
    dav.send("DELETE", "")
    dav.send("MKCALENDAR", "", b'<?xml version="1.0"?><mkcalendar xmlns="urn:ietf:params:xml:ns:caldav"/>')
    dav.asked.clear()
    settings = CalDavSettings(url=dav.url, user=USER, password=PASSWORD)
    return Place(DavCalendar(settings, allowed=HERE), dav, tmp_path)


async def _call(place: Place, arguments: dict[str, Any], key: str = "r1/1", **more: Any) -> dict[str, Any]:
    told: dict[str, Any] = await calendar_action(place.calendar, **more).call(Kept().context(key), arguments)
    return told


def test_it_may_be_called_again(tmp_path: Path) -> None:
    tool = calendar_action(FolderCalendar(tmp_path))
    assert (tool.name, tool.policy) == ("calendar_action", Policy.IDEMPOTENT)
    assert tool.parameters["required"] == ["action"]
    assert tool.parameters["$defs"]["NewEvent"]["required"] == ["title", "start", "end"]


async def test_an_event_is_made_listed_and_removed(place: Place) -> None:
    event = MEETING | {"location": "Room 1; left", "description": "Line 1\nLine 2, more", "timezone": "Europe/Zurich"}
    made = await _call(place, {"action": "create", "event": event})
    assert made == {"uid": event_uid("r1/1")}
    assert (await _call(place, MARCH))["events"] == (
        {
            "uid": made["uid"],
            "title": "Jour fixe — встреча",
            "start": "2026-03-02T09:30:00+01:00",
            "end": "2026-03-02T10:00:00+01:00",
            "location": "Room 1; left",
            "description": "Line 1\nLine 2, more",
        },
    )
    assert await _call(place, {"action": "delete", "uid": made["uid"]}) == {"uid": made["uid"]}
    assert await _call(place, MARCH) == {}
    assert (await _call(place, {"action": "delete", "uid": made["uid"]}))["was_there"] is False


async def test_a_call_that_is_made_again_makes_no_second_event(place: Place) -> None:
    """Its worker died before the result was on record; and what a person changed since then stays."""
    for key in ("r1/1", "r1/1", "r1/2"):
        await _call(place, {"action": "create", "event": MEETING}, key)
    assert len((await _call(place, MARCH))["events"]) == 2
    await _call(place, {"action": "create", "event": MEETING | {"title": "Changed"}})
    assert [event["title"] for event in (await _call(place, MARCH))["events"]] == [MEETING["title"]] * 2


async def test_whole_days_and_times_without_an_offset(place: Place) -> None:
    await _call(place, {"action": "create", "event": {"title": "Off", "start": "2026-03-05", "end": "2026-03-07"}}, "a")
    await _call(place, {"action": "create", "event": MEETING}, "b", timezone="America/New_York")
    first, second = (await _call(place, MARCH))["events"]
    assert (first["start"], first["end"]) == ("2026-03-02T09:30:00-05:00", "2026-03-02T10:00:00-05:00")
    assert (second["start"], second["end"]) == ("2026-03-05", "2026-03-07")


async def test_repetitions_are_listed_one_by_one_over_a_change_of_the_clocks(place: Place) -> None:
    event = MEETING | {"repeats": "RRULE:FREQ=WEEKLY;COUNT=10", "timezone": "Europe/Zurich"}
    await _call(place, {"action": "create", "event": event})
    told = await _call(place, {"action": "list", "since": "2026-03-20T00:00Z", "until": "2026-04-08T00:00Z"})
    assert [event["start"] for event in told["events"]] == [
        "2026-03-23T09:30:00+01:00", "2026-03-30T09:30:00+02:00", "2026-04-06T09:30:00+02:00"
    ]  # fmt: skip


async def test_only_the_time_that_was_asked_for_is_listed(place: Place) -> None:
    await _call(place, {"action": "create", "event": MEETING})
    for since, until in (("2026-02-01", "2026-03-02T09:30Z"), ("2026-03-02T10:00Z", "2026-05-01")):
        assert await _call(place, {"action": "list", "since": since, "until": until}) == {}
    assert (
        len((await _call(place, {"action": "list", "since": "2026-03-02T09:59Z", "until": "2026-04-01"}))["events"])
        == 1
    )


async def test_events_of_other_programs_are_seen_and_removed(place: Place) -> None:
    place.add("some name.ics" if place._dav is None else "some-name.ics", FOREIGN)
    (event,) = (await _call(place, MARCH))["events"]
    assert (event["uid"], event["title"]) == ("other/../1@example.com", "Of another program")
    assert (await _call(place, {"action": "delete", "uid": "1@example.com"}))["was_there"] is False, (
        "a part is no match"
    )
    await _call(place, {"action": "delete", "uid": event["uid"]})
    assert await _call(place, MARCH) == {}


async def test_more_events_than_can_be_listed_are_told_of(place: Place) -> None:
    event = MEETING | {"repeats": "FREQ=DAILY;COUNT=300"}
    await _call(place, {"action": "create", "event": event})
    told = await _call(place, MARCH | {"until": "2027-03-01"})
    assert (len(told["events"]), told["more"]) == (200, True)


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"action": "create"}, "event: the action 'create' needs it"),
        ({"action": "list", "since": "2026-01-01"}, "until: the action 'list' needs it"),
        ({"action": "delete"}, "uid: the action 'delete' needs it"),
        ({"action": "create", "event": MEETING | {"start": "tomorrow"}}, "event.start: 'tomorrow' is no time"),
        ({"action": "create", "event": MEETING | {"end": "2026-03-02T09:30"}}, "event.end: is later than event.start"),
        ({"action": "create", "event": MEETING | {"end": "2026-03-03"}}, "event.end: start and end are both days"),
        ({"action": "create", "event": MEETING | {"timezone": "Mars/North"}}, "timezone: there is no 'Mars/North'"),
        ({"action": "create", "event": MEETING | {"timezone": "../../etc/passwd"}}, "timezone: there is no"),
        ({"action": "create", "event": MEETING | {"repeats": "often"}}, "event.repeats: "),
        ({"action": "create", "event": MEETING | {"repeats": "FREQ=SECONDLY"}}, "event.repeats: needs FREQ="),
        ({"action": "list", "since": "2026-02-01", "until": "2026-01-01"}, "until: is later than since"),
        ({"action": "list", "since": "2020-01-01", "until": "2026-01-01"}, "until: at most 732 days"),
    ],
)
async def test_what_does_not_fit_names_the_field(tmp_path: Path, arguments: dict[str, Any], told: str) -> None:
    tool = calendar_action(FolderCalendar(tmp_path))
    with pytest.raises(ToolError, match=told):
        await tool.call(Kept().context(), arguments)
    assert list(tmp_path.iterdir()) == []


def test_arguments_out_of_bounds_name_the_field(tmp_path: Path) -> None:
    tool = calendar_action(FolderCalendar(tmp_path))
    with pytest.raises(BadData, match=r"\$\.event\.title"):
        tool.check({"action": "create", "event": MEETING | {"title": "x" * 501}})
    with pytest.raises(BadData, match=r"\$\.action"):
        tool.check({"action": "update"})


async def test_words_cannot_write_lines_of_their_own(tmp_path: Path) -> None:
    title = "x\r\nEND:VEVENT\r\nBEGIN:VALARM\x00"
    tool = calendar_action(FolderCalendar(tmp_path))
    await tool.call(Kept().context(), {"action": "create", "event": MEETING | {"title": title}})
    (file,) = tmp_path.glob("*.ics")
    calendar = icalendar.Calendar.from_ical(file.read_bytes())
    assert [part.name for part in calendar.walk()] == ["VCALENDAR", "VEVENT"]
    assert "END:VEVENT" in str(calendar.walk("VEVENT")[0]["summary"])


class TestFolder:
    async def test_a_uid_is_never_a_path(self, tmp_path: Path) -> None:
        (tmp_path / "calendar").mkdir()
        (tmp_path / "secret.ics").write_text("x")
        tool = calendar_action(FolderCalendar(tmp_path / "calendar"))
        told = await tool.call(Kept().context(), {"action": "delete", "uid": "../secret"})
        assert told["was_there"] is False
        assert (tmp_path / "secret.ics").exists()

    async def test_what_cannot_be_read_hides_nothing_else(self, tmp_path: Path) -> None:
        tool = calendar_action(FolderCalendar(tmp_path))
        await tool.call(Kept().context(), {"action": "create", "event": MEETING})
        (tmp_path / "broken.ics").write_bytes(b"BEGIN:VCALENDAR\r\nnonsense\xff")
        (tmp_path / "0.ics").write_bytes(b"")
        assert len((await tool.call(Kept().context(), MARCH))["events"]) == 1

    @pytest.mark.parametrize(
        "rule",
        ["FREQ=SECONDLY", "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=1,2,3,4,5,6,7,8,9", "FREQ=HOURLY\r\nRRULE:FREQ=DAILY"],
    )
    async def test_an_event_that_repeats_all_the_time_is_listed_once(self, tmp_path: Path, rule: str) -> None:
        data = FOREIGN.replace(b"SUMMARY", f"RRULE:{rule}\r\nSUMMARY".encode())
        data = data.replace(b";VALUE=DATE:20260310", b":20260310T000000Z").replace(
            b";VALUE=DATE:20260311", b":20260310T000001Z"
        )
        (tmp_path / "wild.ics").write_bytes(data)
        tool = calendar_action(FolderCalendar(tmp_path))
        assert len((await tool.call(Kept().context(), MARCH))["events"]) == 1

    async def test_events_that_share_a_file_are_left(self, tmp_path: Path) -> None:
        two = FOREIGN.replace(b"END:VCALENDAR", FOREIGN[FOREIGN.index(b"BEGIN:VEVENT") :].replace(b"UID:", b"UID:x"))
        (tmp_path / "both.ics").write_bytes(two)
        tool = calendar_action(FolderCalendar(tmp_path))
        with pytest.raises(ToolError, match="shares a file with other events"):
            await tool.call(Kept().context(), {"action": "delete", "uid": "other/../1@example.com"})
        assert (tmp_path / "both.ics").exists()

    async def test_the_folder_is_made_and_nothing_unfinished_is_left(self, tmp_path: Path) -> None:
        folder = tmp_path / "a" / "b"
        tool = calendar_action(FolderCalendar(folder))
        assert await tool.call(Kept().context(), MARCH) == {}
        await tool.call(Kept().context(), {"action": "create", "event": MEETING})
        assert [path.name for path in folder.iterdir()] == [f"{event_uid('r1/1')}.ics"]

    @pytest.mark.usefixtures("nothing_blocks")
    async def test_nothing_holds_up_the_loop(self, tmp_path: Path) -> None:
        tool = calendar_action(FolderCalendar(tmp_path))
        await tool.call(Kept().context(), {"action": "create", "event": MEETING})
        assert len((await tool.call(Kept().context(), MARCH))["events"]) == 1


class TestCalDav:
    def _calendar(self, url: str, **more: Any) -> DavCalendar:
        given = {"user": USER, "password": PASSWORD} | more
        return DavCalendar(CalDavSettings(url=url, **given), allowed=HERE)

    async def test_a_wrong_password_is_told_without_it(self, dav: DavServer) -> None:
        tool = calendar_action(self._calendar(dav.url, password="wrong-but-secret"))
        with pytest.raises(ToolError, match=r"does not let us do this \(401\)") as error:
            await tool.call(Kept().context(), MARCH)
        assert "wrong-but-secret" not in repr(error.value)

    async def test_a_calendar_that_is_not_there(self, dav: DavServer) -> None:
        tool = calendar_action(self._calendar(dav.url.replace("work", "none")))
        with pytest.raises(ToolError, match="the calendar's server answers with 4"):
            await tool.call(Kept().context(), {"action": "create", "event": MEETING})

    async def test_private_addresses_are_not_called_unless_allowed(self, dav: DavServer) -> None:
        dav.asked.clear()
        calendar = DavCalendar(CalDavSettings(url=dav.url), allowed=Allowed())
        with pytest.raises(ToolError, match=r"cannot be reached: .*BULLPEN_OUTGOING_ALLOW"):
            await calendar_action(calendar).call(Kept().context(), MARCH)
        assert dav.asked == []

    @pytest.mark.parametrize(
        "href", ["http://evil.example/anna/work/1.ics", "//evil.example/anna/work/1.ics", "/anna/other/1.ics",
                 "/anna/work/../other/1.ics", "/anna/work/%2e%2e/other/1.ics"]
    )  # fmt: skip
    def test_a_server_does_not_send_us_elsewhere(self, dav: DavServer, href: str) -> None:
        calendar = self._calendar(dav.url)
        assert calendar._place("/anna/work/1.ics") == f"{dav.url}1.ics"
        with pytest.raises(ToolError, match="names a place outside of it"):
            calendar._place(href)

    @pytest.mark.parametrize(
        "more, told",
        [
            ({"url": "ftp://x"}, "url: an address that begins with"),
            ({"url": "https://u:p@x.example/"}, "url: without a user"),
            ({"url": "http://x.example/", "user": "u", "password": "p"}, "url: begins with http://"),
            ({"url": "https://x.example/", "timeout_s": 0}, "timeout_s: "),
        ],
    )
    def test_settings_that_do_not_fit_are_named(self, more: dict[str, Any], told: str) -> None:
        with pytest.raises(BadOption, match=told):
            CalDavSettings(**more)

    def test_settings_come_from_the_environment(self) -> None:
        assert caldav_from({}) is None
        found = caldav_from(
            {
                "BULLPEN_CALDAV_URL": "https://x.example/c/",
                "BULLPEN_CALDAV_USER": "u",
                "BULLPEN_CALDAV_PASSWORD": "p4ss",
            }
        )
        assert found == CalDavSettings(url="https://x.example/c/", user="u", password="p4ss")
        assert "p4ss" not in repr(found)
        with pytest.raises(BadOption, match="BULLPEN_CALDAV_URL: url: "):
            caldav_from({"BULLPEN_CALDAV_URL": "x"})
