"""`office_tools`: those of these tools that can be offered here."""

from collections.abc import Mapping
from pathlib import Path

from bullpen.agents.tools.office.calendar_action import Calendar, calendar_action
from bullpen.agents.tools.office.calendar_dav import DavCalendar, caldav_from
from bullpen.agents.tools.office.calendar_folder import FolderCalendar
from bullpen.agents.tools.office.document import generate_document
from bullpen.agents.tools.office.files import ReadFile
from bullpen.agents.tools.office.image import generate_image
from bullpen.agents.tools.office.mail import send_email
from bullpen.agents.tools.office.mail_settings import SmtpSettings, smtp_from
from bullpen.agents.tools.office.slides import generate_slides
from bullpen.agents.tools.tool import Tool
from bullpen.builtin.addresses import Allowed
from bullpen.errors import BadOption
from bullpen.settings import Settings

_FOLDER, _ZONE = "BULLPEN_CALENDAR_DIR", "BULLPEN_CALENDAR_TIMEZONE"


def office_tools(
    *,
    read_file: ReadFile | None = None,
    fonts: Path | str | None = None,
    smtp: SmtpSettings | None = None,
    calendar: Calendar | None = None,
    timezone: str | None = None,
    allowed: Allowed | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Tool]:
    """Documents, slides and pictures; mail and a calendar as given, or as the environment says.

    BadOption names what is wrong.

    Without a server for mail there is no `send_email`, and without a calendar no `calendar_action`: a model is not
    told of what cannot be done.
    """
    found = Settings() if environment is None else environment
    tools = [
        generate_document(read_file=read_file, fonts=fonts),
        generate_slides(read_file=read_file),
        generate_image(fonts=fonts),
    ]
    server = smtp or smtp_from(found)
    if server is not None:
        tools.append(send_email(server, read_file=read_file, allowed=allowed))
    place = calendar or _calendar_from(found, allowed)
    if place is not None:
        tools.append(calendar_action(place, timezone=timezone or found.get(_ZONE, "").strip() or "UTC"))
    return tools


def _calendar_from(found: Mapping[str, str], allowed: Allowed | None) -> Calendar | None:
    server, folder = caldav_from(found), found.get(_FOLDER, "").strip()
    if server is not None and folder:
        raise BadOption(f"{_FOLDER}: a folder or a server (BULLPEN_CALDAV_URL), not both")
    if server is not None:
        return DavCalendar(server, allowed=allowed)
    return FolderCalendar(folder) if folder else None
