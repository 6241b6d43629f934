"""Every way to a server ends at the same jobs: sockets, users, TLS, Valkey, services that refuse questions."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from bullpen.errors import StoreError, StoreUnavailable
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import SettleOutcome
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import fresh_prefix
from tests.support.redis_server import RedisServer, running_redis, valkey_program
from tests.support.redis_tls import TlsServer, running_tls_redis

SECRET = "s3cr3t"


@contextlib.asynccontextmanager
async def opened(store: RedisStore) -> AsyncIterator[RedisStore]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def carries_a_job(url: str) -> bool:
    """Add, wait, claim, settle, look and follow, by this address."""
    store = RedisStore(url, prefix=fresh_prefix())
    async with opened(store):
        await store.add([NewJob("mail", "welcome")], request="r1")
        assert await store.wait(["mail"], timeout_ms=1)
        (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
        outcomes = await store.settle([Settlement(claimed.lease, Completed())], request="s1")
        assert (await store.events("mail", after="", limit=10, timeout_ms=1)).events
        assert await store.queues() == ["mail"]
        return tuple(outcomes) == (SettleOutcome.SETTLED,)


async def refusal(url: str) -> StoreError:
    store = RedisStore(url)
    with pytest.raises(StoreError) as refused:
        await store.open()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.counts("mail")
    assert SECRET not in str(refused.value)
    return refused.value


@pytest.fixture(scope="module")
def socket_server() -> Iterator[RedisServer]:
    with running_redis("--unixsocket", "redis.sock") as server:
        yield server


async def test_a_close_that_was_given_up_leaves_no_connection(socket_server: RedisServer) -> None:
    with socket_server.client() as client:
        before = len(client.client_list())
        for rounds in range(30):
            store = RedisStore(socket_server.url)
            await store.open()
            await store.queues()
            closing = asyncio.create_task(store.close())
            for _ in range(rounds):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait([closing])
            await store.close()  # what the first did not come to
            async with asyncio.timeout(5):
                while len(client.client_list()) > before:
                    await asyncio.sleep(0)


async def test_by_a_unix_socket(socket_server: RedisServer) -> None:
    assert await carries_a_job(f"unix://{socket_server.folder}/redis.sock?db=1")


async def test_a_database_of_its_own(redis_server: RedisServer) -> None:
    first, second = RedisStore(redis_server.url), RedisStore(redis_server.url.replace("/0", "/9"))
    async with opened(first), opened(second):
        queue = fresh_prefix()
        await second.add([NewJob(queue, "welcome")], request=queue)
        assert queue not in await first.queues()
        assert queue in await second.queues()


async def test_an_address_has_its_prefix(redis_server: RedisServer) -> None:
    prefix = fresh_prefix()
    store = RedisStore(f"{redis_server.url}?prefix={prefix}")
    async with opened(store):
        await store.add([NewJob("mail", "welcome")], request="r1")
    with redis_server.client() as client:
        assert client.exists(f"{prefix}:mail:wait")


# ── users ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def guarded_server() -> Iterator[RedisServer]:
    """With a user who has what jobs need, and no question about the server is answered."""
    refused = ("-config", "-client", "-info", "-cluster", "-time", "-ping")
    with running_redis() as server:
        with server.client() as client:
            # redis-py's own word is for names of categories; this is the command line's.
            words = ("ACL", "SETUSER", "ann", "on", f">{SECRET}", "~*", "&*", "+@all", *refused)
            client.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own
        yield server


async def test_a_service_that_refuses_every_question(guarded_server: RedisServer) -> None:
    """What cannot be asked is not checked."""
    assert await carries_a_job(guarded_server.url.replace("//", f"//ann:{SECRET}@"))


async def test_who_may_not_ask_for_the_time_waits_all_the_same(guarded_server: RedisServer) -> None:
    """And claims by its own clock, on a trip of its own."""
    store = RedisStore(guarded_server.url.replace("//", f"//ann:{SECRET}@"), prefix=fresh_prefix())
    async with opened(store):
        expecting = asyncio.create_task(
            store.wait_and_claim({"mail": 1}, worker="w", lease_ms=1000, request="c1", timeout_ms=120_000)
        )
        await asyncio.sleep(0)
        await store.add([NewJob("mail", "welcome")], request="r1")
        (claimed,) = (await asyncio.wait_for(expecting, 60)).claimed.jobs
    assert claimed.job.name == "welcome"


async def test_a_wrong_password_is_not_worth_another_try(guarded_server: RedisServer) -> None:
    refused = await refusal(guarded_server.url.replace("//", f"//ann:{SECRET}x@"))
    assert not isinstance(refused, StoreUnavailable)


async def test_a_user_who_may_not_run_scripts_is_told(guarded_server: RedisServer) -> None:
    with guarded_server.client() as client:
        words = ("ACL", "SETUSER", "bob", "on", f">{SECRET}", "~*", "+@read")
        client.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own
    store = RedisStore(guarded_server.url.replace("//", f"//bob:{SECRET}@"))
    async with opened(store):
        with pytest.raises(StoreError, match="refused us") as refused:
            await store.add([NewJob("mail", "welcome")], request="r1")
    assert not isinstance(refused.value, StoreUnavailable)


# ── TLS ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def tls_server() -> Iterator[TlsServer]:
    with running_tls_redis() as server:
        yield server


async def test_over_tls(tls_server: TlsServer) -> None:
    assert await carries_a_job(tls_server.url(ca=tls_server.certificates.ca))


async def test_a_certificate_of_a_stranger_is_refused(tls_server: TlsServer) -> None:
    refused = await refusal(tls_server.url(ca=tls_server.certificates.stranger))
    assert "certificate" in str(refused)
    assert not isinstance(refused, StoreUnavailable)


async def test_without_an_authority_the_systems_are_trusted(tls_server: TlsServer) -> None:
    assert "certificate" in str(await refusal(tls_server.url()))


async def test_a_certificate_for_another_host_is_refused() -> None:
    """Whoever can answer in the server's place may hold a good certificate for a name of his own."""
    with running_tls_redis(name="DNS:elsewhere.example") as server:
        refused = await refusal(server.url(ca=server.certificates.ca))
    assert "certificate" in str(refused)


async def test_a_client_shows_its_certificate() -> None:
    with running_tls_redis(asks_for_client=True) as server:
        own = server.certificates
        assert await carries_a_job(server.url(ca=own.ca, cert=own.client_cert, key=own.client_key))
        await refusal(server.url(ca=own.ca))


# ── dialects and versions ────────────────────────────────────────────────────────────────


async def test_a_valkey_server() -> None:
    with running_redis(program=valkey_program()) as server:
        assert await carries_a_job(server.url)


async def test_nothing_listens() -> None:
    refused = await refusal("redis://127.0.0.1:1")
    assert isinstance(refused, StoreUnavailable)


async def test_a_hundred_and_more_at_once(redis_server: RedisServer) -> None:
    """The driver's own pool ends at a hundred."""
    store = RedisStore(redis_server.url, prefix=fresh_prefix())
    async with opened(store):
        asleep = [asyncio.create_task(store.wait(["mail"], timeout_ms=50)) for _ in range(150)]
        assert await asyncio.gather(*asleep) == [False] * 150
