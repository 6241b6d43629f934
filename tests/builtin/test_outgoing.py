"""Calls to addresses that somebody else wrote down: where they may go, and how they end."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bullpen import AddressRefused, BadOption, CallFailed
from bullpen.builtin.addresses import Allowed
from bullpen.builtin.outgoing import Outgoing
from tests.builtin.receiver import DRIP, HANG, Receiver, receiving

_THIS_MACHINE = [
    "127.0.0.1",
    "127.8.9.10",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "localhost",
    "LOCALHOST",
]
_PRIVATE = [
    "10.0.0.1",
    "172.16.3.4",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a00:1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
]


@pytest.mark.parametrize("host", [*_THIS_MACHINE, *_PRIVATE])
async def test_nothing_behind_the_firewall_is_called(host: str, receiver: Receiver) -> None:
    """However it is written: what counts is where it leads."""
    with pytest.raises(AddressRefused) as refused:
        await Outgoing(Allowed()).call("POST", f"http://{host}:{receiver.port}/")
    assert str(refused.value).startswith("url: ")
    assert receiver.connections == 0


@pytest.mark.parametrize("host", [host for host in [*_THIS_MACHINE, *_PRIVATE] if host.lower() != "localhost"])
def test_what_shows_at_once_is_refused_at_once(host: str) -> None:
    with pytest.raises(AddressRefused):
        Outgoing(Allowed()).check(f"https://{host}/")


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_public_addresses_are_called(address: str) -> None:
    assert Allowed().allows(ipaddress.ip_address(address))


async def test_a_name_that_leads_here_is_refused_and_so_is_one_that_leads_to_both(receiver: Receiver) -> None:
    for found in (["127.0.0.1"], ["1.1.1.1", "127.0.0.1"], ["::ffff:127.0.0.1"], ["fe80::1%lo"]):

        async def resolve(host: str, port: int, found: Sequence[str] = found) -> Sequence[str]:
            return found

        with pytest.raises(AddressRefused, match=r"hooks\.example"):
            await Outgoing(Allowed(), resolve=resolve).call("POST", f"http://hooks.example:{receiver.port}/")
    assert receiver.connections == 0


async def test_the_call_goes_to_the_address_that_was_looked_at(receiver: Receiver) -> None:
    """A name server that answers otherwise a moment later is not asked again."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    outgoing = Outgoing(Allowed.parse("127.0.0.1"), resolve=resolve)
    answer = await outgoing.call("POST", f"http://hooks.example:{receiver.port}/a?b=c", content=b"x")
    assert (answer.status, answer.body) == (200, b"thank you")
    assert asked == ["hooks.example"]
    (got,) = receiver.received
    assert (got.path, got.body, got.headers["host"]) == ("/a?b=c", b"x", f"hooks.example:{receiver.port}")
    with pytest.raises(AddressRefused):
        await outgoing.call("POST", f"http://hooks.example:{receiver.port}/")


async def test_another_address_is_tried_where_nobody_listens(receiver: Receiver) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    outgoing = Outgoing(Allowed.parse("127.0.0.0/8"), resolve=resolve)
    assert (await outgoing.call("GET", f"http://hooks.example:{receiver.port}/")).status == 200


async def test_a_redirect_is_an_answer_and_no_way_to_go(receiver: Receiver, outgoing: Outgoing) -> None:
    receiver.answers, receiver.headers = [302], f"Location: http://127.0.0.1:{receiver.port}/elsewhere\r\n"
    assert (await outgoing.call("POST", receiver.url)).status == 302
    assert [one.path for one in receiver.received] == ["/hook"]


@pytest.mark.parametrize("way", [HANG, DRIP])
async def test_a_call_ends_in_time(way: int, receiver: Receiver) -> None:
    receiver.answers = [way]
    with pytest.raises(CallFailed, match="did not answer within"):
        await Outgoing(Allowed.parse("127.0.0.1"), timeout=0.3).call("POST", receiver.url)


async def test_only_the_beginning_of_an_answer_is_read(receiver: Receiver) -> None:
    receiver.body = b"x" * 5_000_000
    answer = await Outgoing(Allowed.parse("127.0.0.1"), max_answer=100).call("POST", receiver.url)
    assert answer.body == b"x" * 100


async def test_cookies_are_not_kept(receiver: Receiver, outgoing: Outgoing) -> None:
    receiver.headers = "Set-Cookie: a=b\r\n"
    await outgoing.call("POST", receiver.url)
    await outgoing.call("POST", receiver.url)
    assert "cookie" not in receiver.received[1].headers


async def test_proxies_of_the_environment_are_not_asked(
    receiver: Receiver, outgoing: Outgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would resolve the name anew, and reach what we may not."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert (await outgoing.call("POST", receiver.url)).status == 200


async def test_nobody_there_is_told_without_the_path(receiver: Receiver, outgoing: Outgoing) -> None:
    """Some addresses are secrets themselves."""
    with pytest.raises(CallFailed, match=r"127\.0\.0\.1") as failed:
        await outgoing.call("POST", "http://127.0.0.1:1/services/T0/s3cret")
    assert "s3cret" not in str(failed.value)


@pytest.mark.parametrize(
    "url", ["ftp://example.com/", "file:///etc/passwd", "example.com", "", "https://", "http://a b/", "http://x:99999/"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused, match=r"^url: "):
        Outgoing(Allowed()).check(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(AddressRefused, match="password") as refused:
        Outgoing(Allowed()).check("https://ann:s3cret@example.com/")
    assert "s3cret" not in str(refused.value)


def test_what_is_allowed_is_checked() -> None:
    with pytest.raises(BadOption, match="BULLPEN_OUTGOING_ALLOW: 'intranet'"):
        Allowed.parse("10.0.0.0/8, intranet")
    assert Allowed.parse("10.0.0.0/8, ::1").allows(ipaddress.ip_address("::ffff:10.1.2.3"))
    assert not Allowed.parse("10.0.0.0/8").allows(ipaddress.ip_address("127.0.0.1"))


# ── TLS ──────────────────────────────────────────────────────────────────────────────────


def _certified(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server that has a certificate for this name, and for a caller who trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate = folder / "certificate.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    return server, ssl.create_default_context(cafile=str(certificate))


async def test_a_certificate_is_checked_against_the_name(tmp_path: Path) -> None:
    """Though the connection goes to an address, and other names may be at that address."""
    server, caller = _certified(tmp_path, "hooks.example")

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with receiving(server) as receiver:
        outgoing = Outgoing(Allowed.parse("127.0.0.1"), resolve=resolve, tls=caller)
        assert (await outgoing.call("POST", f"https://hooks.example:{receiver.port}/")).status == 200
        with pytest.raises(CallFailed, match=r"other\.example"):
            await outgoing.call("POST", f"https://other.example:{receiver.port}/")
        with pytest.raises(CallFailed, match="CERTIFICATE"):
            await Outgoing(Allowed.parse("127.0.0.1"), resolve=resolve).call(
                "POST", f"https://hooks.example:{receiver.port}/"
            )
        assert len(receiver.received) == 1
