"""Commands whose Redis server goes away under them."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.commands import Folder
from tests.support.places import ServerPlace
from tests.support.redis_server import RedisServer, running_redis


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis("--appendonly", "yes", "--appendfsync", "always") as server:
        yield server


@pytest.fixture
def place(server: RedisServer) -> ServerPlace:
    """On a server of its own."""
    return ServerPlace(server.url)


def _heard(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stderr is not None
    while text not in (line := process.stderr.readline()):
        assert line, f"{text} never came"


def test_events_are_followed_over_an_outage(folder: Folder, server: RedisServer) -> None:
    """Whoever follows is told that the server is away, and what happened once it is back."""
    assert folder.bullpen("enqueue", "mail", "news", "--id", "before").code == 0
    with folder.started("events", "mail", "--follow", "--from", "start", "--json") as following:
        assert following.stdout is not None
        assert '"before"' in following.stdout.readline()
        server.kill()
        _heard(following, "cannot follow the events of mail, trying again")
        server.start_again()
        assert folder.bullpen("enqueue", "mail", "news", "--id", "after").code == 0
        while '"after"' not in (line := following.stdout.readline()):
            assert line
        following.terminate()
        assert following.wait(30) == 0


def test_top_ends_with_one_line(folder: Folder, server: RedisServer) -> None:
    assert folder.bullpen("enqueue", "mail", "news").code == 0
    with folder.at_terminal("top") as terminal:
        terminal.until("No workers.")
        server.kill()
        answer = terminal.end()
    assert answer.code == 3
    assert answer.lines[-1].endswith("[store-unavailable]")
