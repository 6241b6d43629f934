"""Opening: a server is examined once, not with each add that makes sure of an open store."""

from bullpen.stores.redis import RedisStore
from tests.support.redis_server import RedisServer


def _examined(server: RedisServer) -> int:
    """How often the server was asked for its time, which only an examination does."""
    with server.client() as client:
        stats = client.info("commandstats")
    assert isinstance(stats, dict)
    return int(stats["cmdstat_time"]["calls"])


async def test_an_open_store_is_not_examined_again(store: RedisStore, redis_server: RedisServer) -> None:
    """`await job_type.add(…)` opens the store each time: an open one must cost no trip."""
    before = _examined(redis_server)
    for _ in range(3):
        await store.open()
    assert _examined(redis_server) == before
    await store.close()
    await store.open()
    assert _examined(redis_server) == before + 1
