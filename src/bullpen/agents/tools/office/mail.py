"""`send_email`: a mail by the operator's own server, to whom the operator allows."""

import asyncio
import email.policy
import hashlib
import importlib
import ssl
from email.message import EmailMessage
from email.utils import format_datetime, localtime
from typing import Annotated

from msgspec import Meta, Struct

from bullpen.agents.tools.office.files import KeptFile, ReadFile, needs, plain, read_kept
from bullpen.agents.tools.office.mail_settings import SmtpSettings
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.builtin.addresses import Allowed
from bullpen.errors import ToolError

_MOST_BYTES = 25_000_000
"""Of all attachments; most servers refuse more."""

Address = Annotated[str, Meta(min_length=3, max_length=254)]
To = Annotated[list[Address], Meta(min_length=1, max_length=50, description="Addresses such as name@example.com.")]
Cc = Annotated[list[Address], Meta(max_length=50)]
Subject = Annotated[str, Meta(min_length=1, max_length=300, description="One line.")]
Text = Annotated[str, Meta(min_length=1, max_length=200_000, description="Plain text.")]
Attachments = Annotated[list[str], Meta(max_length=10, description="Ids of artifacts that are sent along.")]


class Sent(Struct, frozen=True, omit_defaults=True):
    message_id: str
    accepted: tuple[str, ...]
    refused: tuple[str, ...] = ()
    """Whom the server would not take it for."""


def send_email(
    settings: SmtpSettings,
    *,
    read_file: ReadFile | None = None,
    allowed: Allowed | None = None,
    tls: ssl.SSLContext | None = None,
) -> Tool:
    """A tool that sends mail. After a crash a person is asked whether it went out: no server can be asked that.

    `allowed` are networks that may be connected to though they are not public; `BULLPEN_OUTGOING_ALLOW` if not given.
    `tls` is for a server whose certificate the system does not trust.
    """

    @tool(name="send_email", policy=Policy.ONCE, timeout=settings.timeout_s + 30)
    async def send(
        context: ToolContext,
        to: To,
        subject: Subject,
        text: Text,
        cc: Cc | None = None,
        attachments: Attachments | None = None,
    ) -> Sent:
        """Send an email. It cannot be taken back."""
        recipients = [settings.recipient(address, f"to[{n}]") for n, address in enumerate(to)]
        copies = [settings.recipient(address, f"cc[{n}]") for n, address in enumerate(cc or ())]
        files = [
            await read_kept(read_file, context, artifact, f"attachments[{n}]")
            for n, artifact in enumerate(attachments or ())
        ]
        message = await asyncio.to_thread(_written, settings, context.key, recipients, copies, subject, text, files)
        with needs("aiosmtplib"):
            await asyncio.to_thread(importlib.import_module, "bullpen.agents.tools.office.smtp")
            from bullpen.agents.tools.office.smtp import deliver
        everybody = list(dict.fromkeys((*recipients, *copies)))
        refused = await deliver(settings, message, everybody, allowed or Allowed.from_environment(), tls)
        accepted = tuple(address for address in everybody if address not in refused)
        return Sent(str(message["Message-ID"]), accepted, tuple(refused))

    return send


def message_id(key: str, sender: str) -> str:
    """The same whenever the same call is made, so that a mail that went out twice is known as one."""
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{sender.rpartition('@')[2]}>"


def _written(
    settings: SmtpSettings, key: str, to: list[str], cc: list[str], subject: str, text: str, files: list[KeptFile]
) -> EmailMessage:
    if subject != plain(subject) or len(subject.splitlines()) != 1 or "\t" in subject:
        raise ToolError("subject: is one line, without a line end or a sign that cannot be seen")
    size = sum(len(file.data) for file in files)
    if size > _MOST_BYTES:
        raise ToolError(f"attachments: have {size:,} bytes; {_MOST_BYTES:,} is the most")
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"] = settings.sender
    message["To"] = ", ".join(to)
    if cc:
        message["Cc"] = ", ".join(cc)
    message["Subject"] = subject
    message["Date"] = format_datetime(localtime())
    message["Message-ID"] = message_id(key, settings.sender)
    message["Auto-Submitted"] = "auto-generated"  # so that holiday replies and the like leave it alone
    message.set_content(plain(text))
    for file in files:
        main, _, sub = file.mime.partition("/")
        if not (main.isalnum() and sub.replace("-", "").replace(".", "").replace("+", "").isalnum()):
            main, sub = "application", "octet-stream"
        name = " ".join(plain(file.name).split()) or "file"
        message.add_attachment(file.data, maintype=main, subtype=sub, filename=name)
    return message
