"""Addresses of Redis servers: what each part means, and what is told of a wrong one."""

from pathlib import Path

import pytest

from bullpen.errors import BadOption
from bullpen.settings import store_from
from bullpen.stores.redis import RedisStore
from bullpen.stores.redis.address import SCHEMES, Address, Kind, Login, Node, Tls, parse_address

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "text, address",
    [
        ("redis://db", Address(kind=Kind.SERVER, nodes=(Node("db", 6379),))),
        (
            "redis://ann:p%40ss%2Fword@db:7000/3?prefix=shop",
            Address(kind=Kind.SERVER, nodes=(Node("db", 7000),), login=Login("ann", "p@ss/word"), db=3, prefix="shop"),
        ),
        ("redis://:pw@db", Address(kind=Kind.SERVER, nodes=(Node("db", 6379),), login=Login(None, "pw"))),
        ("redis://[::1]:7000", Address(kind=Kind.SERVER, nodes=(Node("::1", 7000),))),
        ("rediss://db", Address(kind=Kind.SERVER, nodes=(Node("db", 6379),), tls=Tls())),
        (
            "unix://ann:pw@/run/my%20redis.sock?db=2",
            Address(kind=Kind.SOCKET, socket="/run/my redis.sock", login=Login("ann", "pw"), db=2),
        ),
        (
            "redis+sentinel://ann:pw@a,b:7000/main/2?sentinel_user=watch&sentinel_password=wpw",
            Address(
                kind=Kind.SENTINEL,
                nodes=(Node("a", 26379), Node("b", 7000)),
                login=Login("ann", "pw"),
                sentinel_login=Login("watch", "wpw"),
                service="main",
                db=2,
            ),
        ),
        (
            "rediss+cluster://a:7000,b?prefix=%7Bshop%7D",
            Address(kind=Kind.CLUSTER, nodes=(Node("a", 7000), Node("b", 6379)), tls=Tls(), prefix="{shop}"),
        ),
    ],
)
def test_every_form_is_read(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert isinstance(store_from(text), RedisStore)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_is_a_store(scheme: str) -> None:
    assert isinstance(store_from(f"{scheme}:///run/redis.sock" if scheme == "unix" else f"{scheme}://db/0"), RedisStore)


@pytest.mark.parametrize(
    "text, part",
    [
        (f"redis:{SECRET}@db", "begins with"),
        (f"redis+magic://u:{SECRET}@db", "begins with"),
        (f"redis://u:{SECRET}@", "host"),
        (f"redis://u:{SECRET}@::1", "host"),
        (f"redis://u:{SECRET}@db:port", "port"),
        (f"redis://u:{SECRET}@db:70000", "port"),
        (f"redis://u:{SECRET}@db/mail", "database"),
        (f"redis://u:{SECRET}@db/1/2", "database"),
        (f"redis://u:{SECRET}@a,b", "one host"),
        (f"redis://u:{SECRET}/x@db", "%2F"),
        (f"redis://u:{SECRET}?x@db", "%3F"),
        (f"redis://u:{SECRET}", "port"),
        (f"redis://u:{SECRET}@db?prefx=a", "prefx"),
        (f"redis://u:{SECRET}@db?prefix=", "prefix is empty"),
        (f"redis://u:{SECRET}@db?prefix=a&prefix=b", "twice"),
        (f"redis://u:{SECRET}@db?ca=ca.pem", "'ca'"),
        (f"rediss://u:{SECRET}@db?ca=/nowhere/ca.pem", "ca is not a file"),
        (f"unix://u:{SECRET}@run/redis.sock", "third slash"),
        (f"unix://u:{SECRET}@", "path of the socket"),
        (f"redis+sentinel://u:{SECRET}@a,b", "service"),
        (f"redis+sentinel://u:{SECRET}@a,/main", "host"),
        (f"redis+cluster://u:{SECRET}@a/1", "no databases"),
    ],
)
def test_a_wrong_address_is_refused_by_the_part_that_is_wrong(text: str, part: str) -> None:
    with pytest.raises(BadOption) as refusal:
        RedisStore(text)
    assert part in str(refusal.value)
    assert SECRET not in str(refusal.value)


def test_a_key_needs_its_certificate(tmp_path: Path) -> None:
    key = tmp_path / "client.key"
    key.touch()
    with pytest.raises(BadOption, match="cert"):
        parse_address(f"rediss://db?key={key}")


@pytest.mark.parametrize(
    "address, shown",
    [
        (f"redis://u:{SECRET}@db/2", "redis://db:6379"),
        (f"rediss+sentinel://u:{SECRET}@a,b/main?sentinel_password={SECRET}", "rediss+sentinel://a:26379,b:26379/main"),
        (f"redis+cluster://u:{SECRET}@[::1]:7000", "redis+cluster://[::1]:7000"),
        (f"unix://u:{SECRET}@/run/redis.sock", "unix:///run/redis.sock"),
    ],
)
def test_no_password_is_shown(address: str, shown: str) -> None:
    parsed = parse_address(address)
    assert str(parsed) == shown
    assert SECRET not in repr(parsed)
    assert SECRET not in repr(RedisStore(address))


@pytest.mark.parametrize("address", [f"postgres://u:{SECRET}@db", f"u:{SECRET}@db", f"redis//u:{SECRET}@db"])
def test_what_is_no_address_is_not_quoted(address: str) -> None:
    with pytest.raises(BadOption) as refusal:
        store_from(address)
    assert SECRET not in str(refusal.value)


# ── the prefix ───────────────────────────────────────────────────────────────────────────


def test_the_prefix_is_bullmqs_unless_told() -> None:
    assert parse_address("redis://db").choose_prefix() == "bull"
    assert parse_address("redis://db?prefix=shop").choose_prefix() == "shop"
    assert parse_address("redis://db?prefix=shop").choose_prefix("mine") == "mine"


def test_on_a_cluster_the_prefix_keeps_all_keys_together() -> None:
    assert parse_address("redis+cluster://a").choose_prefix() == "{bull}"
    assert parse_address("redis+cluster://a").choose_prefix("shop:{x}") == "shop:{x}"


@pytest.mark.parametrize("prefix", ["shop", "{}", "{shop", "shop}"])
def test_a_prefix_without_a_hash_tag_is_refused_on_a_cluster(prefix: str) -> None:
    with pytest.raises(BadOption, match="hash tag") as refusal:
        RedisStore("redis+cluster://a", prefix=prefix)
    assert f"{{{prefix}}}" in str(refusal.value)
