"""Tokens of an identity provider: signed by one of its published keys, for us, and still good."""

import asyncio
import json
import logging
import urllib.request
from collections.abc import Mapping
from typing import Any, TypeGuard

import jwt

from bullpen.clock import Clock
from bullpen.job.names import is_text
from bullpen.records.keys import Role
from bullpen.server.access.caller import Caller, CallerKind, named
from bullpen.server.problems import Outdated, Refused
from bullpen.server.settings import JwtSettings

logger = logging.getLogger("bullpen.server")

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""With a public key only: with HS256, whoever knows the public key could sign."""
_GOOD_MS = 300_000
_AGAIN_MS = 10_000
"""Tokens that name unknown keys must not make us ask the provider each time."""
_FETCH_S = 5.0
_MAX_BYTES = 1_000_000
_MAX_TENANT = 200


class Tokens:
    """Tells whose token it is."""

    def __init__(self, settings: JwtSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_ms: int | None = None
        self._is_away = False
        """Whether its keys could not be fetched the last time."""
        self._fetching = asyncio.Lock()

    async def caller(self, token: str) -> Caller:
        """Whose it is; Refused if it is not good, does not say enough, or cannot be judged at the moment."""
        try:
            key = await self._key_of(jwt.get_unverified_header(token))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                options={"require": ["exp", "sub"]},
                leeway=10,
            )
        except jwt.ExpiredSignatureError as error:
            # Its signature was looked at first.
            raise Outdated("the token has expired") from error
        except jwt.PyJWTError as error:
            raise _refused(f"the token is not good: {error}") from error
        return _caller_of(claims)

    async def _key_of(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        kid = str(header.get("kid", ""))
        if kid not in self._keys or self._is_older_than(_GOOD_MS):
            async with self._fetching:
                if self._is_older_than(_GOOD_MS if kid in self._keys else _AGAIN_MS):
                    await self._fetch()
        if kid in self._keys:
            return self._keys[kid]
        if self._is_away:
            # It may be as good as any: a worker that is refused ends, one that is put off asks again.
            again = {"Retry-After": str(_AGAIN_MS // 1000)}
            raise Refused("issuer-unavailable", "the keys of the tokens' issuer cannot be fetched", headers=again)
        raise _refused("the token is signed with a key that its issuer does not publish")

    def _is_older_than(self, age_ms: int) -> bool:
        return self._fetched_ms is None or self._clock.mono_ms() - self._fetched_ms >= age_ms

    async def _fetch(self) -> None:
        try:
            published = await asyncio.to_thread(_read, self._settings.jwks_url)
            keys = jwt.PyJWKSet.from_dict(published).keys
        except (OSError, ValueError, jwt.PyJWTError) as error:
            logger.warning("the keys of the tokens' issuer cannot be fetched: %s", error)
            self._is_away = True  # those of before stay good until it is back
        else:
            self._is_away = False
            self._keys = {str(key.key_id or ""): key for key in keys}
        finally:
            self._fetched_ms = self._clock.mono_ms()


def _read(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=_FETCH_S) as answer:  # noqa: S310 - the scheme was checked
        found = json.loads(answer.read(_MAX_BYTES))
    if not isinstance(found, dict):
        raise ValueError("a JWKS is an object")  # noqa: TRY004 - as for what is no JSON at all
    return found


def _caller_of(claims: Mapping[str, Any]) -> Caller:
    subject, role, tenant, queues = (claims.get(name) for name in ("sub", "role", "tenant", "queues"))
    if not isinstance(subject, str) or not is_text(subject) or "\0" in subject:
        raise _refused("the token's subject is no text")
    if role not in tuple(Role):
        raise _refused(f"the token's role is none of {', '.join(Role)}")
    if tenant is not None and not _is_tenant(tenant):
        raise _refused(f"the token's tenant is no text of 1 to {_MAX_TENANT} characters")
    if queues is not None and not (isinstance(queues, list) and all(isinstance(queue, str) for queue in queues)):
        raise _refused("the token's queues are no list of texts")
    return Caller(
        name=named("jwt", subject),
        role=Role(role),
        kind=CallerKind.JWT,
        tenant=tenant,
        queues=None if queues is None else frozenset(queues),
    )


def _is_tenant(tenant: object) -> TypeGuard[str]:
    return isinstance(tenant, str) and is_text(tenant) and len(tenant) <= _MAX_TENANT and "\0" not in tenant


def _refused(detail: str) -> Refused:
    return Refused("unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})
