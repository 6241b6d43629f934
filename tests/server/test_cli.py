"""`bullpen server`, `bullpen keys`, `bullpen users` and `bullpen budgets`, as processes of their own."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bullpen.records.records import Records
from tests.server.test_outbox import give_problem

_LIMIT_S = 60


def _bullpen(folder: Path, *words: str, sent: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bullpen.cli", *words]
    return subprocess.run(
        command, cwd=folder, input=sent, capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    assert _bullpen(tmp_path, "keys").stdout == "No keys.\n"
    made = json.loads(
        _bullpen(tmp_path, "keys", "create", "ci", "--role", "producer", "--tenant", "acme", "--json").stdout
    )
    assert made["text"].startswith(f"bp_{made['prefix']}_")
    listed = _bullpen(tmp_path, "keys").stdout
    assert "acme" in listed
    assert "good" in listed
    assert made["text"] not in listed
    assert "is revoked" in _bullpen(tmp_path, "keys", "revoke", made["id"]).stdout
    assert "revoked" in _bullpen(tmp_path, "keys").stdout
    missing = _bullpen(tmp_path, "keys", "revoke", "nobody")
    assert missing.returncode == 1
    assert "[record-missing]" in missing.stderr


def test_users_are_made_listed_and_changed(tmp_path: Path) -> None:
    made = _bullpen(tmp_path, "users", "create", "ann", "--role", "admin", sent="a long password\n")
    assert made.stdout == "ann may log in as admin\n"
    assert _bullpen(tmp_path, "users", "create", "bob", "--role", "admin", sent="short\n").returncode == 2
    assert "another password" in _bullpen(tmp_path, "users", "password", "ann", sent="another long one\n").stdout
    assert _bullpen(tmp_path, "users", "disable", "ann").returncode == 0
    (ann,) = json.loads(_bullpen(tmp_path, "users", "--json").stdout)
    assert (ann["name"], ann["role"]) == ("ann", "admin")
    assert ann["disabled_ms"]
    assert "password" not in ann
    assert _bullpen(tmp_path, "users", "enable", "ann").stdout == "ann may log in again as admin\n"
    assert _bullpen(tmp_path, "users", "role", "ann", "reviewer").stdout == "ann is reviewer now\n"
    assert _bullpen(tmp_path, "users", "role", "ann", "king").returncode == 2
    (ann,) = json.loads(_bullpen(tmp_path, "users", "--json").stdout)
    assert (ann["role"], ann["disabled_ms"]) == ("reviewer", None)


def test_budgets_are_set_listed_and_removed(tmp_path: Path) -> None:
    assert _bullpen(tmp_path, "budgets").stdout == "No budgets.\n"
    made = _bullpen(tmp_path, "budgets", "set", "day", "1500", "--tenant", "acme")
    assert made.stdout == "acme may spend 1500 credits: in each day of UTC\n"
    assert _bullpen(tmp_path, "budgets", "--tenant", "acme", "set", "total", "7").returncode == 0
    listed = _bullpen(tmp_path, "budgets", "--tenant", "acme").stdout
    assert "1,500" in listed
    assert "never" in listed
    day, total = json.loads(_bullpen(tmp_path, "budgets", "--tenant", "acme", "--json").stdout)
    assert (day["period"], day["most"], day["left"]) == ("day", 1_500_000_000, 1_500_000_000)
    assert (total["period"], total["renews_ms"]) == ("total", None)
    assert _bullpen(tmp_path, "budgets").stdout == "No budgets.\n"
    assert _bullpen(tmp_path, "budgets", "remove", "day", "--tenant", "acme").returncode == 0
    gone = _bullpen(tmp_path, "budgets", "remove", "day", "--tenant", "acme")
    assert gone.returncode == 1
    assert "[record-missing]" in gone.stderr
    assert _bullpen(tmp_path, "budgets", "set", "week", "7").returncode == 2


def _get(url: str, path: str, headers: dict[str, str] | None = None) -> bytes:
    request = urllib.request.Request(f"{url}{path}", headers=headers or {})
    with urllib.request.urlopen(request, timeout=_LIMIT_S) as answer:
        found: bytes = answer.read()
    return found


async def test_rows_of_the_outbox_are_listed_sent_and_dropped(tmp_path: Path) -> None:
    """Whom an alert pages has a terminal, and no Python at hand."""
    assert _bullpen(tmp_path, "outbox").stdout == "No rows with a problem.\n"
    async with await Records.open(f"sqlite:{tmp_path / '.bullpen' / 'records.db'}") as records:
        for job_id in ("one", "two", "three"):
            await give_problem(records, job_id)
    listed = _bullpen(tmp_path, "outbox", "list").stdout
    assert all(word in listed for word in ("one", "two", "three", "mail", "in doubt"))
    one, two, three = json.loads(_bullpen(tmp_path, "outbox", "list", "--json").stdout)
    sent = json.loads(_bullpen(tmp_path, "outbox", "resend", str(one["number"]), "--json").stdout)
    assert sent == [{"number": one["number"], "queue": "mail", "job_id": "one"}]
    assert "dropped: 2 (mail/two)" in _bullpen(tmp_path, "outbox", "discard", str(two["number"])).stdout
    gone = _bullpen(tmp_path, "outbox", "discard", str(three["number"]), str(two["number"]))
    assert (gone.returncode, "[record-missing]" in gone.stderr) == (1, True)
    assert "dropped: 3 (mail/three)" in gone.stdout, "what was done before is told all the same"
    assert json.loads(_bullpen(tmp_path, "outbox", "--json").stdout) == []
    async with await Records.open(f"sqlite:{tmp_path / '.bullpen' / 'records.db'}") as records:
        entries = (await records.audit.list()).entries
    assert [(entry.action, entry.details["job"]) for entry in entries] == [
        ("outbox.discard", "mail/three"),
        ("outbox.discard", "mail/two"),
        ("outbox.resend", "mail/one"),
    ]


async def test_what_is_written_by_the_command_line_is_in_the_audit_log(tmp_path: Path) -> None:
    """Whoever has the machine may let others in; that is told as what is done over HTTP."""
    words = ("create", "ci", "--role", "producer", "--tenant", "acme", "--json")
    key = json.loads(_bullpen(tmp_path, "keys", *words).stdout)
    assert _bullpen(tmp_path, "keys", "revoke", key["id"]).returncode == 0
    assert _bullpen(tmp_path, "budgets", "set", "day", "5", "--tenant", "acme").returncode == 0
    assert _bullpen(tmp_path, "budgets", "remove", "day", "--tenant", "acme").returncode == 0
    async with await Records.open(f"sqlite:{tmp_path / '.bullpen' / 'records.db'}") as records:
        entries = (await records.audit.list()).entries
    assert [(entry.action, entry.target, entry.tenant) for entry in reversed(entries)] == [
        ("key.create", key["id"], "acme"),
        ("key.revoke", key["id"], "acme"),
        ("budget.set", "day", "acme"),
        ("budget.remove", "day", "acme"),
    ]
    assert {entry.actor.partition(":")[0] for entry in entries} == {"cli"}
    assert key["text"] not in str(entries)


@pytest.fixture
def server(tmp_path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bullpen.cli", "server", "--port", "0"]
    return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_server_starts_serves_and_ends(server: subprocess.Popen[str], tmp_path: Path) -> None:
    with server:
        try:
            assert server.stdout is not None
            found = re.fullmatch(r"Bullpen is at (http://127\.0\.0\.1:\d+)\n", server.stdout.readline())
            assert found is not None
            assert "everyone on this machine is admin" in server.stdout.readline()
            assert "bullpen keys create" in server.stdout.readline()
            assert json.loads(_get(found[1], "/v1/me"))["name"] == "local"
            assert b"make dashboard" in _get(found[1], "/") or b"<!doctype" in _get(found[1], "/")
            assert _bullpen(tmp_path, "enqueue", "mail", "welcome").returncode == 0
            assert json.loads(_get(found[1], "/v1/queues/mail/jobs/1"))["name"] == "welcome"
            key = json.loads(_bullpen(tmp_path, "keys", "create", "ci", "--role", "admin", "--json").stdout)["text"]
            with pytest.raises(urllib.error.HTTPError) as refused:
                _get(found[1], "/v1/me")
            assert refused.value.code == 401
            refused.value.close()
            # A stream that is open does not keep it.
            request = urllib.request.Request(f"{found[1]}/v1/events", headers={"Authorization": f"Bearer {key}"})
            with urllib.request.urlopen(request, timeout=_LIMIT_S) as stream:
                assert stream.readline().startswith(b":")
                server.send_signal(signal.SIGTERM)
                stream.read()
            assert server.wait(_LIMIT_S) == 0
        finally:
            server.kill()


def test_others_are_not_served_until_access_is_set_up(tmp_path: Path) -> None:
    refused = _bullpen(tmp_path, "server", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "bullpen keys create" in refused.stderr
    assert "[bad-option]" in refused.stderr


def test_a_port_that_is_taken_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for verb in ("server", "dev"):
            refused = _bullpen(tmp_path, verb, "--port", str(port))
            assert refused.returncode == 2, verb
            assert f"port: cannot listen at 127.0.0.1:{port}" in refused.stderr
            assert "[bad-option]" in refused.stderr


def test_two_demos_at_once_have_a_dashboard_each(tmp_path: Path) -> None:
    """Started in the same moment: only one gets the usual port, and the other is none the worse."""
    command = [sys.executable, "-m", "bullpen.cli", "dev"]
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    demos = [subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for folder in folders]
    try:
        urls = []
        for demo in demos:
            assert demo.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+", demo.stdout.readline())
            assert found is not None
            urls.append(found[0])
        assert len(set(urls)) == len(demos)
        for url in urls:
            assert json.loads(_get(url, "/v1/me"))["name"] == "local"
        for demo in demos:
            demo.send_signal(signal.SIGTERM)
            demo.communicate(timeout=_LIMIT_S)
            assert demo.returncode == 0
    finally:
        for demo in demos:
            demo.kill()
            demo.communicate()
