"""What is offered depends on what is set up, and what is missing says what to install."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.tools.office import FolderCalendar, SmtpSettings, generate_document, office_tools
from bullpen.agents.tools.office.gathering import _calendar_from
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import BadOption, ToolError
from tests.agents.tools.office.kept import Kept

FILES = ["generate_document", "generate_slides", "generate_image"]
SMTP = {"BULLPEN_SMTP_HOST": "mail.example", "BULLPEN_MAIL_FROM": "bot@acme.example", "BULLPEN_MAIL_TO": "*"}
DAV = {"BULLPEN_CALDAV_URL": "https://dav.example/c/"}


@pytest.mark.parametrize(
    "environment, more",
    [
        ({}, []),
        (SMTP, ["send_email"]),
        (DAV, ["calendar_action"]),
        ({"BULLPEN_CALENDAR_DIR": "events"} | SMTP, ["send_email", "calendar_action"]),
    ],
)
def test_a_model_is_not_told_of_what_cannot_be_done(environment: dict[str, str], more: list[str]) -> None:
    found = Toolbox(office_tools(environment=environment))
    assert [tool.name for tool in found] == FILES + more
    for spec in found.specs():
        assert spec.parameters["type"] == "object"
        assert spec.description


def test_what_is_given_comes_before_the_environment(tmp_path: Path) -> None:
    smtp = SmtpSettings(host="mail.example", sender="a@b.example", domains=())
    names = [tool.name for tool in office_tools(smtp=smtp, calendar=FolderCalendar(tmp_path), environment={})]
    assert names == [*FILES, "send_email", "calendar_action"]


@pytest.mark.parametrize(
    "environment, told",
    [
        (DAV | {"BULLPEN_CALENDAR_DIR": "events"}, "BULLPEN_CALENDAR_DIR: a folder or a server"),
        (SMTP | {"BULLPEN_MAIL_FROM": ""}, "BULLPEN_SMTP_HOST and its kin: sender"),
        ({"BULLPEN_CALENDAR_DIR": "x", "BULLPEN_CALENDAR_TIMEZONE": "Mars/North"}, "timezone: .*'Mars/North'"),
    ],
)
def test_settings_that_do_not_fit_are_named(environment: dict[str, str], told: str) -> None:
    with pytest.raises(BadOption, match=told):
        office_tools(environment=environment)


async def test_times_without_an_offset_are_in_the_zone_that_is_set(tmp_path: Path) -> None:
    environment = {"BULLPEN_CALENDAR_DIR": str(tmp_path), "BULLPEN_CALENDAR_TIMEZONE": "Asia/Tokyo"}
    (*_, tool) = office_tools(environment=environment)
    event = {"title": "t", "start": "2026-03-02T09:00", "end": "2026-03-02T10:00"}
    await tool.call(Kept().context(), {"action": "create", "event": event})
    told = await tool.call(Kept().context(), {"action": "list", "since": "2026-03-01", "until": "2026-03-04"})
    assert told["events"][0]["start"] == "2026-03-02T09:00:00+09:00"
    assert _calendar_from({}, None) is None


LIBRARIES = ["docx", "pptx", "fpdf", "fontTools", "PIL", "resvg_py", "aiosmtplib", "icalendar", "markdown_it"]


def test_all_tools_are_made_without_their_libraries() -> None:
    """They are imported when a tool is first called, not when it is offered."""
    code = "import sys; from bullpen.agents.tools.office import office_tools; print(len(office_tools()), *sys.modules)"
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), **SMTP, "BULLPEN_CALENDAR_DIR": "x"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    count, *modules = done.stdout.split()
    assert count == "5"
    assert not set(modules) & set(LIBRARIES)


@pytest.mark.parametrize(
    "kind, library, package",
    [("docx", "docx", "python-docx"), ("pdf", "fpdf", "fpdf2"), ("docx", "markdown_it", "markdown-it-py")],
)
async def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, kind: str, library: str, package: str
) -> None:
    for name in list(sys.modules):
        if name.startswith("bullpen.agents.tools.office.") and name.rpartition(".")[2] in {
            "blocks",
            "docx_writing",
            "pdf_writing",
        }:
            monkeypatch.delitem(sys.modules, name)
    missing: Any = None
    monkeypatch.setitem(sys.modules, library, missing)
    with pytest.raises(ToolError, match=rf"{package} is not installed .*: pip install 'bullpen\[agents\]'"):
        await generate_document().call(Kept().context(), {"title": "T", "text": "t", "kind": kind})
