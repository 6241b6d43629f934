"""One mail over SMTP: to an address that was looked at, behind TLS that is checked, told without secrets."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from email.message import EmailMessage

import aiosmtplib

from bullpen.agents.tools.office.mail_settings import SmtpSettings
from bullpen.builtin.addresses import Allowed, literal
from bullpen.errors import AddressRefused, ToolError


async def deliver(
    settings: SmtpSettings,
    message: EmailMessage,
    recipients: Sequence[str],
    allowed: Allowed,
    tls: ssl.SSLContext | None = None,
) -> list[str]:
    """Those whom the server refused it for. ToolError says whether it may have gone out all the same."""
    handed_over = False
    try:
        async with asyncio.timeout(settings.timeout_s):
            async with _connected(settings, allowed, tls) as server:
                await _log_in(settings, server)
                handed_over = True
                refused, _ = await server.send_message(message, sender=settings.sender, recipients=list(recipients))
                return list(refused)
    except aiosmtplib.SMTPRecipientsRefused as error:
        codes = ", ".join(f"{one.recipient} ({one.code})" for one in error.recipients)
        raise ToolError(f"not sent: the server takes no mail for {codes}") from None
    except aiosmtplib.SMTPResponseException as error:
        raise ToolError(f"not sent: the server says {error.code}: {_told(settings, error.message)}") from None
    except (aiosmtplib.SMTPException, TimeoutError, OSError) as error:
        # From the moment the mail is handed over nobody here knows what the server did with it.
        begin = "perhaps sent, do not send it again unasked" if handed_over else "not sent"
        raise ToolError(f"{begin}: {type(error).__name__}: {_told(settings, str(error))}") from None


@contextlib.asynccontextmanager
async def _connected(
    settings: SmtpSettings, allowed: Allowed, tls: ssl.SSLContext | None
) -> AsyncIterator[aiosmtplib.SMTP]:
    context = tls or await asyncio.to_thread(ssl.create_default_context)  # reads files
    server = aiosmtplib.SMTP(
        hostname=settings.host,
        sock=await _connect(settings, allowed),
        use_tls=settings.tls == "tls",
        start_tls=False,
        tls_context=context,
        local_hostname="localhost",  # the name of this machine is nobody's business
        timeout=settings.timeout_s,
    )
    try:
        await server.connect()
        if settings.tls == "starttls":
            await server.starttls(server_hostname=settings.host)
        yield server
    finally:
        server.close()


async def _connect(settings: SmtpSettings, allowed: Allowed) -> socket.socket:
    """To an address of the host that may be called; a name that leads elsewhere a moment later gains nothing."""
    loop = asyncio.get_running_loop()
    given = literal(settings.host)
    if given is not None:
        found = [given]
    else:
        places = await loop.getaddrinfo(settings.host, settings.at_port, type=socket.SOCK_STREAM)
        found = [str(place[0]) for *_, place in places]
    try:
        addresses = allowed.check(settings.host, found)
    except AddressRefused as error:
        raise ToolError(f"not sent: {str(error).removeprefix('url: ')}") from None
    failed: OSError | None = None
    for address in dict.fromkeys(addresses):
        connection = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            await loop.sock_connect(connection, (str(address), settings.at_port))
        except OSError as error:
            connection.close()
            failed = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise failed or OSError(f"{settings.host} has no address")


async def _log_in(settings: SmtpSettings, server: aiosmtplib.SMTP) -> None:
    if not settings.user:
        return
    try:
        await server.login(settings.user, settings.password)
    except aiosmtplib.SMTPAuthenticationError as error:
        # What the server says may hold what was sent.
        raise ToolError(f"not sent: the server does not take our user and password ({error.code})") from None


def _told(settings: SmtpSettings, text: str) -> str:
    for secret in (settings.password, settings.user):
        text = text.replace(secret, "…") if secret else text
    return " ".join(text.split())[:200]
