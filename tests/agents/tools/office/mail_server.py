"""A real mail server on this machine: with TLS or without, with a password or without."""

import asyncio
import contextlib
import email.policy
import ssl
from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from tests.support.redis_tls import Certificates

USER, PASSWORD = "robot", "a-long-secret-0815"


class Inbox:
    """What came, and what is answered where a test says so."""

    def __init__(self) -> None:
        self.port = 0
        self.messages: list[EmailMessage] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.were_encrypted: list[bool] = []
        self.refuses: set[str] = set()
        self.answer = "250 OK"
        self.hangs_up = False

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        if address in self.refuses:
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            self.messages.append(BytesParser(EmailMessage, policy=email.policy.default).parsebytes(envelope.content))
            self.envelopes.append((envelope.mail_from, envelope.rcpt_tos))
            self.were_encrypted.append(session.ssl is not None)
        if self.hangs_up:
            server.transport.abort()
        return self.answer


def _authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    assert isinstance(data, LoginPassword)
    is_known = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_known, handled=False)  # the server answers itself


class _Controller(Controller):
    """Listens at whichever port is free."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # it has no types


@contextlib.contextmanager
def running_inbox(
    certificates: Certificates | None = None, *, is_tls: bool = False, asks_password: bool = False
) -> Iterator[Inbox]:
    """With certificates it offers STARTTLS and takes nothing before it, or speaks TLS from the start."""
    inbox = Inbox()
    options: dict[str, Any] = {}
    if certificates is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificates.cert, certificates.key)
        options |= {"ssl_context": context} if is_tls else {"tls_context": context, "require_starttls": True}
    if asks_password:
        options |= {"authenticator": _authenticate, "auth_required": True, "auth_require_tls": not is_tls}
    controller = _Controller(inbox, hostname="127.0.0.1", port=0, **options)
    controller.start()
    inbox.port = controller.port
    try:
        yield inbox
    finally:
        controller.stop()
