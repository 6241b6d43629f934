"""Mail to a real server, over real connections of this machine."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.tools.office import KeptFile, SmtpSettings, send_email, smtp_from
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool
from bullpen.builtin.addresses import Allowed
from bullpen.errors import BadData, BadOption, ToolError
from tests.agents.tools.office.kept import Kept
from tests.agents.tools.office.mail_server import PASSWORD, USER, Inbox, running_inbox
from tests.support.redis_tls import Certificates

HERE = Allowed.parse("127.0.0.1")
MAIL = {"to": ["anna@example.com"], "subject": "Hello", "text": "Hi Anna"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("mail"), "IP:127.0.0.1")


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with running_inbox() as inbox:
        yield inbox


def _settings(port: int, **more: Any) -> SmtpSettings:
    given: dict[str, Any] = {
        "host": "127.0.0.1",
        "sender": "bot@acme.example",
        "domains": ("example.com",),
        "tls": "none",
        "port": port,
    }
    return SmtpSettings(**(given | more))


def _tool(inbox: Inbox, kept: Kept | None = None, *, tls: ssl.SSLContext | None = None, **more: Any) -> Tool:
    read = kept.read if kept is not None else None
    return send_email(_settings(inbox.port, **more), read_file=read, allowed=HERE, tls=tls)


def _trusting(file: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(file))


def test_a_person_is_asked_before_it_is_done_twice() -> None:
    tool = send_email(_settings(25))
    assert (tool.name, tool.policy) == ("send_email", Policy.ONCE)
    assert tool.parameters["required"] == ["to", "subject", "text"]


async def test_a_mail_arrives(kept: Kept, inbox: Inbox) -> None:
    kept.files["a1"] = KeptFile("Übersicht.pdf", b"%PDF-1.7 \x00\xff", "application/pdf")
    kept.files["a2"] = KeptFile("odd\r\nBcc: x@y.example", b"data", "text/html\r\nX: y")
    told = await _tool(inbox, kept).call(
        kept.context(),
        {
            "to": ["Anna@example.com"],
            "cc": ["ben@EXAMPLE.com"],
            "subject": "Grüße — сегодня " + "long " * 40,
            "text": "Hällo\n.\nlast line",
            "attachments": ["a1", "a2"],
        },
    )
    (message,) = inbox.messages
    assert told == {"message_id": message["Message-ID"], "accepted": ("Anna@example.com", "ben@example.com")}
    assert inbox.envelopes == [("bot@acme.example", ["Anna@example.com", "ben@example.com"])]
    assert (message["From"], message["To"], message["Cc"]) == (
        "bot@acme.example",
        "Anna@example.com",
        "ben@example.com",
    )
    assert message["Subject"].startswith("Grüße — сегодня long")
    assert message["Bcc"] is None
    body = message.get_body()
    assert body is not None
    assert body.get_content().splitlines() == ["Hällo", ".", "last line"]
    first, second = message.iter_attachments()
    assert (first.get_filename(), first.get_content_type()) == ("Übersicht.pdf", "application/pdf")
    assert first.get_content() == b"%PDF-1.7 \x00\xff"
    assert (second.get_filename(), second.get_content_type()) == ("odd Bcc: x@y.example", "application/octet-stream")


async def test_the_same_call_has_the_same_message_id(kept: Kept, inbox: Inbox) -> None:
    tool = _tool(inbox)
    for key in ("r1/1", "r1/1", "r1/2"):
        await tool.call(kept.context(key), MAIL)
    first, again, other = (message["Message-ID"] for message in inbox.messages)
    assert first == again != other
    assert first.endswith("@acme.example>")
    assert "r1" not in first


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # the server does not know of the TLS around it
@pytest.mark.parametrize("is_tls", [True, False])
async def test_tls_and_a_password(kept: Kept, certificates: Certificates, *, is_tls: bool) -> None:
    with running_inbox(certificates, is_tls=is_tls, asks_password=True) as inbox:
        tls: Any = "tls" if is_tls else "starttls"
        settings = _settings(inbox.port, tls=tls, user=USER, password=PASSWORD)
        tool = send_email(settings, allowed=HERE, tls=_trusting(certificates.ca))
        await tool.call(kept.context(), MAIL)
        assert len(inbox.messages) == 1
        assert is_tls or inbox.were_encrypted == [True]


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # the server does not know of the TLS around it
@pytest.mark.parametrize("is_tls", [True, False])
async def test_a_server_that_is_not_trusted_gets_nothing(
    kept: Kept, certificates: Certificates, *, is_tls: bool
) -> None:
    with running_inbox(certificates, is_tls=is_tls, asks_password=True) as inbox:
        tls: Any = "tls" if is_tls else "starttls"
        settings = _settings(inbox.port, tls=tls, user=USER, password=PASSWORD)
        tool = send_email(settings, allowed=HERE, tls=_trusting(certificates.stranger))
        with pytest.raises(ToolError, match=r"not sent: .*certificate"):
            await tool.call(kept.context(), MAIL)
        assert inbox.messages == []


async def test_starttls_is_not_given_up_if_the_server_has_none(kept: Kept, inbox: Inbox) -> None:
    settings = _settings(inbox.port, tls="starttls", user=USER, password=PASSWORD)
    with pytest.raises(ToolError, match=r"not sent: .*STARTTLS"):
        await send_email(settings, allowed=HERE).call(kept.context(), MAIL)
    assert inbox.messages == []


async def test_a_wrong_password_is_told_without_it(kept: Kept, certificates: Certificates) -> None:
    with running_inbox(certificates, asks_password=True) as inbox:
        settings = _settings(inbox.port, tls="starttls", user=USER, password="wrong-but-secret")
        tool = send_email(settings, allowed=HERE, tls=_trusting(certificates.ca))
        with pytest.raises(
            ToolError, match=r"not sent: the server does not take our user and password \(535\)"
        ) as error:
            await tool.call(kept.context(), MAIL)
        assert "wrong-but-secret" not in f"{error.value!r} {error.value.__cause__!r} {settings!r}"
        assert USER not in str(error.value)


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"to": ["x@evil.example"]}, r"to\[0\]: mail to evil.example is not allowed here; allowed: example.com"),
        ({"to": ["a@example.com.evil.example"]}, r"to\[0\]: mail to example.com.evil.example is not allowed"),
        ({"to": ["a@sub.example.com"]}, r"to\[0\]: mail to sub.example.com is not allowed"),
        ({"cc": ["a@example.com", "x@evil.example"]}, r"cc\[1\]: mail to evil.example is not"),
        ({"to": ["a@example.com\r\nBcc: x@evil.example"]}, r"to\[0\]: .* is no mail address"),
        ({"to": ["a@evil.example,b@example.com"]}, r"to\[0\]: .* is no mail address"),
        ({"to": ["<x@evil.example>a@example.com"]}, r"to\[0\]: .* is no mail address"),
        ({"to": ['"x@evil.example "@example.com']}, r"to\[0\]: .* is no mail address"),
        ({"to": ["x%evil.example@"]}, r"to\[0\]: .* is no mail address"),
        ({"to": ["аnna@example.com"]}, r"to\[0\]: .* is no mail address"),
        ({"subject": "Hi\r\nBcc: x@evil.example"}, "subject: is one line"),
        ({"subject": "Hi\nX: y"}, "subject: is one line"),
        ({"subject": "Hi\u2028X: y"}, "subject: is one line"),
        ({"subject": "Hi\x00"}, "subject: is one line"),
        ({"attachments": ["none"]}, r"attachments\[0\]: there is no artifact 'none'"),
    ],
)
async def test_nothing_is_slipped_in(kept: Kept, inbox: Inbox, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await _tool(inbox, kept).call(kept.context(), MAIL | arguments)
    assert inbox.messages == []


async def test_a_text_cannot_end_the_mail_and_begin_another(kept: Kept, inbox: Inbox) -> None:
    text = "a\r\n.\r\nMAIL FROM:<x@evil.example>\r\nRCPT TO:<y@evil.example>\r\nDATA\r\nb\n.\nc"
    await _tool(inbox).call(kept.context(), MAIL | {"text": text})
    (message,) = inbox.messages
    assert "RCPT TO:<y@evil.example>" in message.get_content()
    assert inbox.envelopes == [("bot@acme.example", ["anna@example.com"])]


@pytest.mark.parametrize(
    "domains, address, is_allowed",
    [
        (("*",), "x@anything.example", True),
        (("*.example.com",), "x@a.b.example.com", True),
        (("*.example.com",), "x@example.com", False),
        (("*.example.com",), "x@notexample.com", False),
        (("bücher.example",), "x@xn--bcher-kva.example", True),
        ((), "x@example.com", False),
    ],
)
def test_whom_mail_may_go_to(domains: tuple[str, ...], address: str, *, is_allowed: bool) -> None:
    settings = _settings(25, domains=domains)
    if is_allowed:
        assert settings.recipient(address, "to[0]") == address
    else:
        with pytest.raises(ToolError, match=r"to\[0\]: mail to"):
            settings.recipient(address, "to[0]")


async def test_those_whom_the_server_refuses_are_told(kept: Kept, inbox: Inbox) -> None:
    inbox.refuses = {"gone@example.com"}
    told = await _tool(inbox).call(kept.context(), MAIL | {"to": ["gone@example.com", "anna@example.com"]})
    assert (told["accepted"], told["refused"]) == (("anna@example.com",), ("gone@example.com",))
    with pytest.raises(ToolError, match=r"not sent: the server takes no mail for gone@example.com \(550\)"):
        await _tool(inbox).call(kept.context(), MAIL | {"to": ["gone@example.com"]})
    assert len(inbox.messages) == 1


async def test_a_refusal_is_told_as_one(kept: Kept, inbox: Inbox) -> None:
    inbox.answer = "554 looks like spam"
    with pytest.raises(ToolError, match="not sent: the server says 554: looks like spam"):
        await _tool(inbox).call(kept.context(), MAIL)


async def test_a_server_that_hangs_up_may_have_taken_it(kept: Kept, inbox: Inbox) -> None:
    """Nobody knows; a model that is told so does not send it again by itself."""
    inbox.hangs_up = True
    with pytest.raises(ToolError, match="perhaps sent, do not send it again unasked"):
        await _tool(inbox).call(kept.context(), MAIL)
    assert len(inbox.messages) == 1


async def test_a_server_that_does_not_answer_is_told_in_time(kept: Kept) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tool = send_email(_settings(silent.getsockname()[1], timeout_s=0.2), allowed=HERE)
        with pytest.raises(ToolError, match="not sent: "):
            await tool.call(kept.context(), MAIL)


async def test_nobody_listens(kept: Kept) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(ToolError, match="not sent: ConnectionRefusedError"):
        await send_email(_settings(port), allowed=HERE).call(kept.context(), MAIL)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1"])
async def test_private_addresses_are_not_connected_to_unless_allowed(kept: Kept, inbox: Inbox, host: str) -> None:
    tool = send_email(_settings(inbox.port, host=host), allowed=Allowed())
    with pytest.raises(ToolError, match=r"not sent: .* is not called: see BULLPEN_OUTGOING_ALLOW"):
        await tool.call(kept.context(), MAIL)
    assert inbox.messages == []


async def test_attachments_are_bounded(kept: Kept, inbox: Inbox) -> None:
    kept.files["big"] = KeptFile("big.bin", bytes(20_000_001))
    kept.files["half"] = KeptFile("half.bin", bytes(13_000_000))
    tool = _tool(inbox, kept)
    with pytest.raises(ToolError, match=r"attachments\[0\]: 'big' has 20,000,001 bytes"):
        await tool.call(kept.context(), MAIL | {"attachments": ["big"]})
    with pytest.raises(ToolError, match="attachments: have 26,000,000 bytes"):
        await tool.call(kept.context(), MAIL | {"attachments": ["half", "half"]})
    with pytest.raises(BadData, match=r"\$\.to"):
        tool.check(MAIL | {"to": ["a@example.com"] * 51})


@pytest.mark.parametrize(
    "more, told",
    [
        ({"tls": "ssl"}, "tls: starttls, tls or none"),
        ({"host": ""}, "host: the name of a mail server"),
        ({"at": 70_000}, "port: from 1 to 65535"),
        ({"user": "x"}, "password: goes with a user"),
        ({"host": "mail.example", "user": "x", "password": "y"}, "tls: none would show the password"),
        ({"sender": "nobody"}, "sender: 'nobody' is no mail address"),
        ({"domains": ("exa mple",)}, "domains: 'exa mple' is no domain"),
        ({"timeout_s": 0}, "timeout_s: "),
    ],
)
def test_settings_that_do_not_fit_are_named(more: dict[str, Any], told: str) -> None:
    with pytest.raises(BadOption, match=told):
        _settings(more.pop("at", 25), **more)


def test_settings_come_from_the_environment() -> None:
    assert smtp_from({}) is None
    found = smtp_from(
        {
            "BULLPEN_SMTP_HOST": "mail.example",
            "BULLPEN_SMTP_USER": "u",
            "BULLPEN_SMTP_PASSWORD": "p4ss",
            "BULLPEN_SMTP_TLS": "tls",
            "BULLPEN_MAIL_FROM": "bot@acme.example",
            "BULLPEN_MAIL_TO": "example.com, *.acme.example",
        }
    )
    assert found is not None
    assert (found.at_port, found.domains) == (465, ("example.com", "*.acme.example"))
    assert "p4ss" not in repr(found)
    with pytest.raises(BadOption, match="BULLPEN_SMTP_PORT: a whole number"):
        smtp_from({"BULLPEN_SMTP_HOST": "mail.example", "BULLPEN_SMTP_PORT": "x"})
    with pytest.raises(BadOption, match="BULLPEN_SMTP_HOST and its kin: sender"):
        smtp_from({"BULLPEN_SMTP_HOST": "mail.example"})


@pytest.mark.usefixtures("nothing_blocks")
async def test_sending_does_not_hold_up_the_loop(kept: Kept, inbox: Inbox) -> None:
    await _tool(inbox).call(kept.context(), MAIL)
    assert len(inbox.messages) == 1
