"""Finding out who calls: by key, by token, by cookie; or nobody needs to say, on this machine, at first."""

import hmac

from starlette.requests import HTTPConnection

from bullpen.records.keys import Role
from bullpen.records.records import Records
from bullpen.server.access.attempts import Bearers
from bullpen.server.access.caller import LOCAL, Caller, CallerKind, named
from bullpen.server.access.jwt import Tokens
from bullpen.server.problems import Outdated, Refused, forbidden
from bullpen.server.settings import ServerSettings, is_loopback

COOKIE = "bullpen_session"
CSRF_HEADER = "x-csrf-token"
OWN_HEADER = "x-bullpen"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
UNAUTHENTICATED = "unauthenticated"
_KEY = "bp_"
_FORWARDED = frozenset({"forwarded", "x-real-ip", "via", "cf-connecting-ip", "true-client-ip"})
_FORWARDED_BEGIN = "x-forwarded-"


class Access:
    """Tells who calls.

    As long as there was never a key or a user, and there is no JWKS, everyone is admin: *open mode*, on loopback
    only. It ends for good with the first of them; one that has ended does not come back when all keys
    are revoked, or else the last revocation would let everybody in.
    """

    def __init__(self, records: Records, settings: ServerSettings) -> None:
        self._records = records
        self._tokens = None if settings.jwt is None else Tokens(settings.jwt, records.database.clock)
        self._may_be_open = settings.jwt is None
        self._bearers = Bearers(records.database.clock, settings.attempts)

    async def is_open(self) -> bool:
        """Whether nobody needs to say who they are."""
        if self._may_be_open:
            self._may_be_open = await self._records.knows_nobody()
        return self._may_be_open

    async def identify(self, connection: HTTPConnection) -> Caller:
        """Who calls; Refused if that cannot be told, or if a foreign page may be behind it."""
        _refuse_foreign_sockets(connection)
        scheme, _, credentials = connection.headers.get("authorization", "").partition(" ")
        if scheme:
            if scheme.lower() != "bearer" or not credentials.strip():
                raise _unauthenticated("use `Authorization: Bearer` with an API key or a token")
            return await self._counted(credentials.strip(), address_of(connection))
        token = connection.cookies.get(COOKIE)
        if token and (caller := await self._of_session(token)):
            _check_csrf(connection, caller)
            return caller
        if await self.is_open():
            _check_open(connection)
            return LOCAL
        raise _unauthenticated(
            "send an API key or a token as `Authorization: Bearer …`, or log in;"
            " if nobody can any more, `bullpen keys create NAME --role admin` on the server's machine makes a key"
        )

    async def _counted(self, credentials: str, address: str) -> Caller:
        """Whose bearer it is, unless too many from there were wrong."""
        self._bearers.check(credentials, address)
        try:
            caller = await self._of_bearer(credentials)
        except Refused as refused:
            if refused.code == UNAUTHENTICATED and not isinstance(refused, Outdated):
                self._bearers.note_wrong(credentials, address)
            raise
        self._bearers.note_good(credentials)
        return caller

    async def _of_bearer(self, credentials: str) -> Caller:
        if not credentials.startswith(_KEY):
            if self._tokens is None:
                raise _unauthenticated("this is no API key, and tokens are not set up")
            return await self._tokens.caller(credentials)
        key = await self._records.keys.check(credentials)
        if key is None:
            if await self._records.keys.find(credentials) is not None:
                raise Outdated("the API key is revoked or has expired")
            raise _unauthenticated("no such API key")
        queues = None if key.queues is None else frozenset(key.queues)
        return Caller(name=f"key:{key.prefix}", role=key.role, kind=CallerKind.KEY, tenant=key.tenant, queues=queues)

    async def _of_session(self, token: str) -> Caller | None:
        session = await self._records.users.session(token)
        if session is None:
            return None
        user = session.user
        return Caller(
            name=named("user", user.name),
            role=Role(user.role),
            kind=CallerKind.SESSION,
            tenant=user.tenant,
            csrf=session.csrf,
        )


def address_of(connection: HTTPConnection) -> str:
    """From where they call, as far as is known."""
    return connection.client.host if connection.client is not None else ""


def _unauthenticated(detail: str) -> Refused:
    return Refused(UNAUTHENTICATED, detail, headers={"WWW-Authenticate": "Bearer"})


def _method(connection: HTTPConnection) -> str:
    return str(connection.scope.get("method", "GET"))


def _check_csrf(connection: HTTPConnection, caller: Caller) -> None:
    """A browser sends the cookie along whoever made the page; only our own page knows this header."""
    sent = connection.headers.get(CSRF_HEADER, "")
    if _method(connection) not in SAFE and not hmac.compare_digest(sent.encode(), (caller.csrf or "").encode()):
        raise Refused("csrf", "send the `csrf` of GET /v1/me as the header X-CSRF-Token")


def _check_open(connection: HTTPConnection) -> None:
    """Pages of the web run on this machine too: they must neither read by rebinding a name nor write blindly."""
    # A proxy on this machine would make everybody local.
    is_forwarded = any(name in _FORWARDED or name.startswith(_FORWARDED_BEGIN) for name in connection.headers)
    if is_forwarded or not is_loopback(address_of(connection)) or not is_loopback(connection.url.hostname or ""):
        raise forbidden("until access is set up, only localhost is served: create a key or a user first")
    if _method(connection) in SAFE:
        return
    kind = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    # A foreign page can send neither of these without asking first, and that is not answered.
    if kind != "application/json" and OWN_HEADER not in connection.headers:
        raise Refused("csrf", "send the content type application/json, or the header X-Bullpen")


def _refuse_foreign_sockets(connection: HTTPConnection) -> None:
    """Browsers let any page open a WebSocket anywhere, with cookies; they do tell from where."""
    origin = connection.headers.get("origin")
    if connection.scope["type"] != "websocket" or origin is None:
        return
    if origin.partition("://")[2] != connection.headers.get("host"):
        raise forbidden("a WebSocket is opened from our own pages only")
