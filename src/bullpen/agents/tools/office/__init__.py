"""Tools for what an office asks for: documents, slides, pictures, mail and a calendar."""

from bullpen.agents.tools.office.calendar_action import Calendar, calendar_action
from bullpen.agents.tools.office.calendar_dav import CalDavSettings, DavCalendar, caldav_from
from bullpen.agents.tools.office.calendar_folder import FolderCalendar
from bullpen.agents.tools.office.document import generate_document
from bullpen.agents.tools.office.files import KeptFile, ReadFile
from bullpen.agents.tools.office.gathering import office_tools
from bullpen.agents.tools.office.image import generate_image
from bullpen.agents.tools.office.mail import send_email
from bullpen.agents.tools.office.mail_settings import SmtpSettings, smtp_from
from bullpen.agents.tools.office.slides import generate_slides

__all__ = [
    "CalDavSettings",
    "Calendar",
    "DavCalendar",
    "FolderCalendar",
    "KeptFile",
    "ReadFile",
    "SmtpSettings",
    "caldav_from",
    "calendar_action",
    "generate_document",
    "generate_image",
    "generate_slides",
    "office_tools",
    "send_email",
    "smtp_from",
]
