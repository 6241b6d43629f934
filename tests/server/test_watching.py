"""Open streams end with the access of who opened them, and asking about that costs next to nothing."""

from typing import Any

from starlette.requests import HTTPConnection

from bullpen.records.keys import NewKey
from bullpen.server.access.caller import LOCAL
from bullpen.server.access.identifying import Access
from bullpen.server.access.watching import ASK_MS, FRESH_MS, Watches
from bullpen.server.site import Site
from bullpen.testing.clock import ManualClock
from tests.server.calling import only_on_files

pytestmark = only_on_files


class _Counted(Access):
    """Counts how often it is asked."""

    asked = 0

    async def identify(self, connection: HTTPConnection) -> Any:
        self.asked += 1
        return await super().identify(connection)


def _connection(**headers: str) -> HTTPConnection:
    named = [(b"host", b"localhost"), *((name.encode(), value.encode()) for name, value in headers.items())]
    ends = {"client": ("127.0.0.1", 50_000), "server": ("localhost", 80)}
    return HTTPConnection({"type": "http", "method": "GET", "path": "/", "headers": named, **ends})


async def test_one_asks_for_all_who_have_the_same_credentials(site: Site) -> None:
    clock, access = ManualClock(), _Counted(site.records, site.settings)
    watches = Watches(access, clock)
    watching = [watches.watch(_connection(), LOCAL) for _ in range(50)]
    clock.advance(ASK_MS)
    assert all([await watch.may_go_on() for watch in watching])
    assert access.asked == 1
    assert all([await watch.may_go_on() for watch in watching])
    assert access.asked == 1, "asked a moment ago"


async def test_those_that_began_together_do_not_ask_together(site: Site) -> None:
    """Fifty moments at random within the time: that all are the same does not happen."""
    clock, access = ManualClock(), _Counted(site.records, site.settings)
    watches = Watches(access, clock)
    watching = [watches.watch(_connection(), LOCAL) for _ in range(50)]
    moments = 0
    for _ in range(0, ASK_MS, FRESH_MS):
        clock.advance(FRESH_MS)
        before = access.asked
        assert all([await watch.may_go_on() for watch in watching])
        moments += access.asked > before
    assert moments > 1


async def test_a_key_that_is_revoked_ends_its_streams_and_no_others(site: Site) -> None:
    clock, access = ManualClock(), Access(site.records, site.settings)
    watches = Watches(access, clock)
    opened = []
    keys = [await site.records.keys.create(NewKey(name=name, role="operator"), created_by="test") for name in "ab"]
    for _, text in keys:
        connection = _connection(authorization=f"Bearer {text}")
        opened.append(watches.watch(connection, await access.identify(connection)))
    clock.advance(ASK_MS)
    assert [await watch.may_go_on() for watch in opened] == [True, True]
    await site.records.keys.revoke(keys[0][0].id)
    clock.advance(ASK_MS)
    assert [await watch.may_go_on() for watch in opened] == [False, True]
