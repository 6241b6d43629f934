"""The Lua sources: how they are loaded, and that each says what it takes and gives."""

import re
from pathlib import Path

import pytest

import bullpen.stores.redis
from bullpen.job.spec import NewJob
from bullpen.stores.redis import RedisStore, scripts
from bullpen.stores.redis.keys import LAYOUT
from tests.support.redis_harness import RedisHarness

LUA = Path(bullpen.stores.redis.__file__).parent / "lua"


async def test_a_server_that_forgot_the_scripts_learns_them_again(harness: RedisHarness, store: RedisStore) -> None:
    """A restart or a failover empties the server's cache of scripts."""
    await store.add([NewJob("mail", "welcome")], request="r1")
    await harness.raw.script_flush()
    await store.add([NewJob("mail", "welcome")], request="r2")
    await harness.raw.script_flush()
    claimed = await store.claim({"mail": 2}, worker="w", lease_ms=1000, request="c1")
    assert len(claimed.jobs) == 2


@pytest.mark.parametrize("source", sorted(LUA.glob("*.lua")), ids=lambda path: path.name)
def test_a_script_says_what_it_takes_and_gives(source: Path) -> None:
    header, _, body = source.read_text().partition("]]")
    for word in (f"--[[ {source.stem}:", "KEYS 1", "ARGV 1", "Returns", "Emits"):
        assert word in header
    first_use = body.strip().splitlines()[:4]
    later = "\n".join(body.strip().splitlines()[4:])
    assert first_use
    assert "KEYS[" not in later
    assert "ARGV[" not in later


@pytest.mark.parametrize("source", sorted(LUA.rglob("*.lua")), ids=lambda path: path.name)
def test_no_script_spells_a_key(source: Path) -> None:
    """Keys are spelt in keys.py alone."""
    for key in LAYOUT.values():
        assert f'.. "{key}"' not in source.read_text()


@pytest.mark.parametrize(
    "script", [one for one in vars(scripts).values() if isinstance(one, scripts.Script)], ids=lambda one: one.name
)
def test_a_script_has_the_modules_that_its_parts_ask_for(script: scripts.Script) -> None:
    """Lua would notice a missing one only when it is first asked for, which may be rare."""
    modules = "|".join(path.stem for path in (LUA / "modules").iterdir())
    for asked in re.finditer(rf"\b({modules})\(\)[.\[]", script.text):
        assert f"local function {asked[1]}()\n" in script.text[: asked.start()]
