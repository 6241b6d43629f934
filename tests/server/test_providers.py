"""How providers of models are doing, for those who operate them."""

import pytest

from bullpen.agents.llm.health import HealthRules
from bullpen.agents.llm.shared_health import HealthInRecords
from bullpen.errors import ModelTimeout
from bullpen.server.site import Site
from tests.server.agents import models_known
from tests.server.calling import Client, client_of, key_for

__all__ = ["models_known"]
pytestmark = pytest.mark.usefixtures("models_known")

_NOW_MS = 1_000_000


async def _fails(site: Site, provider: str, times: int) -> None:
    """As workers find it."""
    health, rules = HealthInRecords(site.records.providers), HealthRules()
    error = ModelTimeout("silence at http://10.0.0.1")
    for n in range(times):
        await health.change(provider, lambda now, n=n: now.after_error(error, _NOW_MS + n, rules))  # type: ignore[misc]  # a lambda with a default


async def test_each_provider_is_told_with_what_is_known_of_it(site: Site, client: Client) -> None:
    rules = HealthRules()
    await _fails(site, "faraway", rules.down_after)
    found = {one["name"]: one for one in (await client.get("/v1/providers"))["items"]}
    assert found["faraway"] == {
        "name": "faraway",
        "state": "down",
        "since_ms": _NOW_MS + rules.down_after - 1,
        "last_error": "model-timeout",
        "failures": rules.down_after,
        "next_probe_ms": _NOW_MS + rules.down_after - 1 + rules.probe_every_ms,
        "limited_until_ms": None,
    }
    known = found["scripted"]  # of the table of models, and never found otherwise
    assert (known["state"], known["since_ms"], known["last_error"]) == ("healthy", None, None)
    told = (await client.http.get("/metrics")).text
    assert 'bullpen_provider_health{provider="faraway",state="down"} 1' in told
    assert 'bullpen_provider_health{provider="faraway",state="healthy"} 0' in told
    assert 'bullpen_provider_health{provider="scripted",state="healthy"} 1' in told


async def test_addresses_and_tenants_have_no_part_in_it(site: Site, client: Client) -> None:
    await _fails(site, "faraway", 2)
    assert "10.0.0.1" not in str(await client.get("/v1/providers"))
    async with client_of(site, await key_for(site, "operator")) as caller:
        assert (await caller.get("/v1/providers"))["items"]
    async with client_of(site, await key_for(site, "admin", tenant="acme")) as caller:
        await caller.get("/v1/providers", status=403)
    async with client_of(site, await key_for(site, "reviewer")) as caller:
        await caller.get("/v1/providers", status=403)
