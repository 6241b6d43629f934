"""Tokens of an identity provider, with keys from a server of our own."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bullpen.job.record import JobRef
from bullpen.server.settings import JwtSettings, ServerSettings
from bullpen.server.site import Site
from tests.server.calling import Client, client_of, only_on_files

pytestmark = only_on_files

_ISSUER, _AUDIENCE = "https://login.example", "bullpen"


class Provider:
    """Publishes keys, and signs tokens with them."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {"one": rsa.generate_private_key(public_exponent=65537, key_size=2048)}
        self.asked = 0
        self.is_away = False
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked += 1
                body = json.dumps(provider.jwks()).encode()
                self.send_response(503 if provider.is_away else 200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def jwks(self) -> dict[str, Any]:
        found = []
        for kid, key in self.keys.items():
            kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
            found.append(json.loads(kind.to_jwk(key.public_key())) | {"kid": kid, "use": "sig"})
        return {"keys": found}

    def token(self, kid: str = "one", algorithm: str = "RS256", **claims: Any) -> str:
        usual = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": "ann", "exp": 4_000_000_000, "role": "operator"}
        given = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode(given, self.keys[kid], algorithm=algorithm, headers={"kid": kid})


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.server.serve_forever)
    thread.start()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()
    thread.join()


@pytest.fixture
def settings(provider: Provider) -> ServerSettings:
    return ServerSettings(port=0, jwt=JwtSettings(jwks_url=provider.url, issuer=_ISSUER, audience=_AUDIENCE))


async def test_one_name_in_two_tenants_is_two_callers(site: Site, provider: Provider) -> None:
    """The same subject, the same idempotency key and the same body: two jobs, and nobody's views are another's."""
    known = {}
    for tenant in ("acme", "globex", None):
        bearer = {"Authorization": f"Bearer {provider.token(tenant=tenant)}"}
        async with client_of(site, bearer) as client:
            added = await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201, **{"Idempotency-Key": "k"})
            again = await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201, **{"Idempotency-Key": "k"})
            assert again == added
            assert (await client.get("/v1/views"))["items"] == []
            await client.put("/v1/views/mine", {"page": "jobs", "query": {"of": tenant}})
            assert (await client.get("/v1/views/mine"))["query"] == {"of": tenant}
        known[added["id"]] = (await site.store.job(JobRef("mail", added["id"]))).tenant
    assert set(known.values()) == {"acme", "globex", None}


async def test_a_long_name_has_idempotency_keys_of_its_own(site: Site, provider: Provider) -> None:
    """Longer than the column, and the same at the beginning."""
    ids = set()
    for ending in ("one", "two"):
        bearer = {"Authorization": f"Bearer {provider.token(sub='a' * 300 + ending)}"}
        async with client_of(site, bearer) as client:
            added = await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201, **{"Idempotency-Key": "k"})
            ids.add(added["id"])
    assert len(ids) == 2


async def _me(client: Client, token: str, *, status: int = 200) -> Any:
    return await client.call("GET", "/v1/me", headers={"Authorization": f"Bearer {token}"}, status=status)


async def test_a_good_token_says_who_calls(site: Site, provider: Provider) -> None:
    async with client_of(site) as client:
        me = await _me(client, provider.token(tenant="acme", queues=["mail"]))
        assert (me["name"], me["role"], me["tenant"], me["queues"], me["kind"]) == (
            "jwt:ann",
            "operator",
            "acme",
            ["mail"],
            "jwt",
        )
        for _ in range(5):
            await _me(client, provider.token())
        assert provider.asked == 1, "the keys are known for a while"
        await client.get("/v1/me", status=401)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1_000},
        {"exp": None},
        {"sub": None},
        {"role": None},
        {"role": "god"},
        {"tenant": 7},
        {"tenant": ""},
        {"tenant": "a\0b"},
        {"tenant": "t" * 201},
        {"sub": "a\0b"},
        {"queues": "mail"},
    ],
    ids=str,
)
async def test_a_token_that_is_not_for_us_opens_nothing(site: Site, provider: Provider, claims: dict[str, Any]) -> None:
    async with client_of(site) as client:
        assert (await _me(client, provider.token(**claims), status=401))["code"] == "unauthenticated"


async def test_a_forged_token_opens_nothing(site: Site, provider: Provider) -> None:
    """Signed by another key, by none, or with the public key as if it were a secret."""
    real = provider.keys["one"]
    async with client_of(site) as client:
        provider.keys["one"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        forged = provider.token()
        provider.keys["one"] = real
        await _me(client, forged, status=401)
        claims = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": "ann", "exp": 4_000_000_000, "role": "admin"}
        await _me(client, jwt.encode(claims, "", algorithm="none", headers={"kid": "one"}), status=401)
        public = real.public_key().public_numbers().n.to_bytes(256, "big")
        await _me(client, jwt.encode(claims, public, algorithm="HS256", headers={"kid": "one"}), status=401)


async def test_a_new_key_of_the_issuer_is_found_and_unknown_ones_do_not_make_us_ask(
    site: Site, provider: Provider
) -> None:
    async with client_of(site) as client:
        await _me(client, provider.token())
        provider.keys["two"] = ec.generate_private_key(ec.SECP256R1())
        new = provider.token("two", "ES256")
        await _me(client, new, status=401)
        assert provider.asked == 1, "asked a moment ago"
        _let_time_pass(site)
        await _me(client, new)
        assert provider.asked == 2


async def test_while_the_provider_is_away_its_callers_are_told_to_come_back(site: Site, provider: Provider) -> None:
    """Nobody can tell whether a token is good: none is called wrong, and none is counted as a guess."""
    provider.is_away = True
    async with client_of(site) as client:
        for _ in range(site.settings.attempts * 10 + 1):
            bearer = {"Authorization": f"Bearer {provider.token()}"}
            answer = await client.http.get("/v1/me", headers=bearer)
            assert (answer.status_code, answer.json()["code"]) == (503, "issuer-unavailable")
            assert 0 < int(answer.headers["retry-after"]) <= 10
        assert provider.asked == 1, "asked a moment ago"
        provider.is_away = False
        _let_time_pass(site)
        await _me(client, provider.token())


async def test_keys_that_are_known_stay_good_while_the_provider_is_away(site: Site, provider: Provider) -> None:
    """Only a key that it may have published since cannot be judged."""
    async with client_of(site) as client:
        await _me(client, provider.token())
        provider.is_away = True
        provider.keys["two"] = ec.generate_private_key(ec.SECP256R1())
        _let_time_pass(site)
        await _me(client, provider.token("two", "ES256"), status=503)
        await _me(client, provider.token())
        provider.is_away = False
        _let_time_pass(site)
        await _me(client, provider.token("two", "ES256"))


async def test_a_token_that_expired_is_no_guess(site: Site, provider: Provider) -> None:
    """A client that goes on with one does not lock out who else comes from its address."""
    async with client_of(site) as client:
        for _ in range(site.settings.attempts * 10 + 1):
            await _me(client, provider.token(exp=1_000), status=401)
        await _me(client, provider.token())


def _let_time_pass(site: Site) -> None:
    tokens = site.access._tokens
    assert tokens is not None
    assert tokens._fetched_ms is not None
    tokens._fetched_ms -= 60_000
