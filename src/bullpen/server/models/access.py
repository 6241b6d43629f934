"""Who one is."""

from pydantic import Field

from bullpen.server.models.base import Body, Shown


class Me(Shown):
    name: str
    role: str
    tenant: str | None
    queues: list[str] | None
    kind: str
    csrf: str | None
    permissions: list[str]
    version: str
    store: str
    records: str


class Login(Body):
    name: str = Field(max_length=200, pattern=r"^[^\x00]*$")
    password: str = Field(max_length=1024)


class LoginShown(Shown):
    name: str
    role: str
    tenant: str | None
    csrf: str
    """To be sent along with each write, as the header X-CSRF-Token."""
    expires_ms: int
