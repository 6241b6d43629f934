"""A calendar on a server, by CalDAV (RFC 4791): four calls over HTTP."""

import base64
import dataclasses
import ssl
from collections.abc import Mapping
from urllib.parse import quote, unquote, urljoin, urlsplit
from xml.etree import ElementTree as ET

from bullpen.agents.llm.endpoint import is_loopback
from bullpen.agents.tools.office.xml_reading import parse_xml
from bullpen.builtin.addresses import Allowed
from bullpen.builtin.outgoing import Answer, Outgoing
from bullpen.errors import AddressRefused, BadOption, CallFailed, ToolError
from bullpen.settings import Settings

_URL, _USER, _PASSWORD = "BULLPEN_CALDAV_URL", "BULLPEN_CALDAV_USER", "BULLPEN_CALDAV_PASSWORD"
_DAV, _CAL = "{DAV:}", "{urn:ietf:params:xml:ns:caldav}"
_MOST_BYTES = 900_000

_QUERY = """<?xml version="1.0" encoding="utf-8"?>
<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
<d:prop><d:getetag/><c:calendar-data/></d:prop>
<c:filter><c:comp-filter name="VCALENDAR">
<c:comp-filter name="VEVENT">{filter}</c:comp-filter>
</c:comp-filter></c:filter>
</c:calendar-query>"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CalDavSettings:
    url: str
    """Of the calendar itself, not of the server: `https://dav.example.com/anna/work/`."""
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    timeout_s: float = 20.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadOption("url: an address that begins with https:// or http://")
        if parts.username or parts.query or parts.fragment:
            raise BadOption("url: without a user, '?' or '#'")
        if parts.scheme == "http" and self.password and not is_loopback(parts.hostname):
            raise BadOption("url: begins with http://, which would show the password to others")
        if self.timeout_s <= 0:
            raise BadOption(f"timeout_s: a number of seconds above 0, not {self.timeout_s!r}")


def caldav_from(environment: Mapping[str, str] | None = None) -> CalDavSettings | None:
    """As `BULLPEN_CALDAV_URL` and its kin say; None where it is not set."""
    found = Settings() if environment is None else environment
    url = found.get(_URL, "").strip()
    if not url:
        return None
    try:
        return CalDavSettings(url=url, user=found.get(_USER, "").strip(), password=found.get(_PASSWORD, ""))
    except BadOption as error:
        raise BadOption(f"{_URL}: {error}") from None


class DavCalendar:
    def __init__(
        self, settings: CalDavSettings, *, allowed: Allowed | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._settings = settings
        self._url = settings.url.rstrip("/") + "/"
        self._out = Outgoing(allowed, timeout=settings.timeout_s, max_answer=_MOST_BYTES, tls=tls)

    async def put(self, uid: str, data: bytes) -> None:
        headers = {"Content-Type": "text/calendar; charset=utf-8", "If-None-Match": "*"}
        answer = await self._call("PUT", f"{self._url}{quote(uid, safe='')}.ics", data, headers)
        if answer.status != 412:  # it is there: by this very call, before its worker died
            _expect(answer, 200, 201, 204)

    async def between(self, since: str, until: str) -> list[bytes]:
        found = await self._report(f'<c:time-range start="{since}" end="{until}"/>')
        return [data for _, data in found]

    async def remove(self, uid: str) -> bool:
        from bullpen.agents.tools.office.calendar_events import uids

        words = ET.Element("text-match", {"collation": "i;octet"})
        words.text = uid
        match = ET.tostring(words, encoding="unicode").replace("text-match", "c:text-match")
        for place, data in await self._report(f'<c:prop-filter name="UID">{match}</c:prop-filter>'):
            if uid in uids(data):  # a server may take any part of an id for a match
                answer = await self._call("DELETE", place, b"", {})
                if answer.status in {404, 410}:
                    return False
                _expect(answer, 200, 204)
                return True
        return False

    async def _report(self, filter_: str) -> list[tuple[str, bytes]]:
        """Where each file is, and what is in it."""
        headers = {"Content-Type": "application/xml; charset=utf-8", "Depth": "1"}
        answer = await self._call("REPORT", self._url, _QUERY.format(filter=filter_).encode(), headers)
        _expect(answer, 207)
        if len(answer.body) >= _MOST_BYTES:
            raise ToolError("the calendar has more events there than can be read; ask for a shorter time")
        root = parse_xml(answer.body.decode("utf-8", "replace"), "the calendar's answer")
        found = []
        for response in root.iter(f"{_DAV}response"):
            href = response.findtext(f"{_DAV}href") or ""
            data = next((part.text for part in response.iter(f"{_CAL}calendar-data") if part.text), None)
            if data is not None:
                found.append((self._place(href), data.encode()))
        return found

    def _place(self, href: str) -> str:
        """Within the calendar: a server does not get to send us, with our password, to another."""
        place = urljoin(self._url, href.strip())
        path, own = unquote(urlsplit(place).path), unquote(urlsplit(self._url).path)
        if urlsplit(place)[:2] != urlsplit(self._url)[:2] or not path.startswith(own) or "/../" in path:
            raise ToolError("the calendar's answer names a place outside of it")
        return place

    async def _call(self, method: str, url: str, content: bytes, headers: Mapping[str, str]) -> Answer:
        try:
            return await self._out.call(method, url, headers={**self._access(), **headers}, content=content)
        except (AddressRefused, CallFailed) as error:
            raise ToolError(f"the calendar cannot be reached: {error}") from None

    def _access(self) -> dict[str, str]:
        if not self._settings.user:
            return {}
        pair = f"{self._settings.user}:{self._settings.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _expect(answer: Answer, *statuses: int) -> None:
    if answer.status in {401, 403}:
        raise ToolError(f"the calendar's server does not let us do this ({answer.status})")
    if answer.status not in statuses:
        raise ToolError(f"the calendar's server answers with {answer.status}")
