"""Where a remote worker's server is, and its token."""

from pathlib import Path

import pytest

from bullpen.errors import BadOption
from bullpen.remote.address import server_address

URL = "https://bullpen.example.com"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BULLPEN_SERVER", "BULLPEN_TOKEN", "BULLPEN_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_a_token_comes_from_a_file_or_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is given counts before what the environment says."""
    file = tmp_path / "token"
    file.write_text("bp_file\n")
    monkeypatch.setenv("BULLPEN_TOKEN", "bp_environment")
    assert server_address(URL).token == "bp_environment"
    assert server_address(URL, token_file=file).token == "bp_file"
    assert server_address(URL, token="bp_given").token == "bp_given"
    monkeypatch.delenv("BULLPEN_TOKEN")
    monkeypatch.setenv("BULLPEN_TOKEN_FILE", str(file))
    monkeypatch.setenv("BULLPEN_SERVER", URL + "/")
    assert (server_address().url, server_address().token) == (URL, "bp_file")


def test_a_token_is_never_shown() -> None:
    address = server_address(URL, token="bp_secret")
    assert "secret" not in f"{address} {address!r}"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8787", "http://localhost:8787", "http://[::1]:8787"])
def test_plain_http_is_for_this_machine(url: str) -> None:
    assert server_address(url, token="t").url == url


@pytest.mark.parametrize(
    "url, what",
    [
        ("", "an address"),
        ("bullpen.example.com", "an address"),
        ("ftp://bullpen.example.com", "an address"),
        ("https://ann:secret@bullpen.example.com", "no password"),
        ("http://bullpen.example.com", "plain http"),
        ("http://127.0.0.1.example.com", "plain http"),
    ],
)
def test_refuses_a_bad_address(url: str, what: str) -> None:
    with pytest.raises(BadOption, match=what) as refused:
        server_address(url, token="t")
    assert "secret" not in str(refused.value)


def test_plain_http_elsewhere_must_be_asked_for() -> None:
    assert server_address("http://bullpen.example.com", token="t", allow_http=True).token == "t"


def test_refuses_to_work_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="token"):
        server_address(URL)
    with pytest.raises(BadOption, match="cannot be read"):
        server_address(URL, token_file=tmp_path / "none")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(BadOption, match="holds none"):
        server_address(URL, token_file=tmp_path / "empty")


def test_refuses_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="ca"):
        server_address(URL, token="t", ca=tmp_path / "none.pem").tls()
