"""Keys, users, tenants, the audit log, views and alerts: bodies and answers."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from pydantic import Field

from bullpen.builtin.alerting import condition_of
from bullpen.job.limits import GroupLimits
from bullpen.records.keys import Role
from bullpen.records.settings import SLACK, AlertSetting
from bullpen.records.tenants import Plan
from bullpen.server.models.adding import Word
from bullpen.server.models.base import Body, Shown

_SERVER = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d+)?(?=/|$)")
RoleWord = Annotated[Role, Field(strict=False)]
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]


class KeyBody(Body):
    name: Label
    role: RoleWord
    tenant: Label | None = None
    queues: list[Word] | None = Field(default=None, max_length=1_000)
    expires_ms: int | None = Field(default=None, ge=0, lt=2**53)


class KeyShown(Shown):
    id: str
    prefix: str
    name: str
    role: Role
    tenant: str | None
    queues: list[str] | None
    created_by: str
    created_ms: int
    expires_ms: int | None
    revoked_ms: int | None
    last_used_ms: int | None


class NewKeyShown(KeyShown):
    text: str | None
    """The key itself: this is the only time that anybody sees it. Null where the answer is given again."""


class UserBody(Body):
    name: Label
    password: str = Field(min_length=8, max_length=1_024)
    role: RoleWord
    tenant: Label | None = None


class UserChange(Body):
    role: RoleWord | None = None
    is_disabled: bool | None = None


class PasswordBody(Body):
    password: str = Field(min_length=8, max_length=1_024)


class UserShown(Shown):
    id: str
    name: str
    role: Role
    tenant: str | None
    created_ms: int
    disabled_ms: int | None


class PlanLimits(Body):
    weight: int | None = Field(default=None, ge=1, le=1_000)
    concurrency: int | None = Field(default=None, ge=1, le=1_000_000_000)
    rate_max: int | None = Field(default=None, ge=1, le=1_000_000_000)
    rate_ms: int | None = Field(default=None, ge=1, le=86_400_000)
    max_size: int | None = Field(default=None, ge=1, le=1_000_000_000)


class PlanBody(Body):
    """What a tenant may use, from now on."""

    limits: PlanLimits = PlanLimits()
    queues: dict[str, PlanLimits] = Field(default_factory=dict)
    default_priority: int = Field(default=5, ge=1, le=2_097_151)
    highest_priority: int = Field(default=3, ge=1, le=2_097_151)
    uploads_mb: int | None = Field(default=None, ge=0, le=100_000_000)

    def plan(self) -> Plan:
        return Plan(
            limits=GroupLimits(**self.limits.model_dump()),
            queues={queue: GroupLimits(**limits.model_dump()) for queue, limits in self.queues.items()},
            default_priority=self.default_priority,
            highest_priority=self.highest_priority,
            uploads_mb=self.uploads_mb,
        )


class TenantBody(Body):
    id: Label
    name: str = Field(default="", max_length=200, pattern=r"^[^\x00]*$")
    plan: PlanBody = PlanBody()


class TenantChange(Body):
    plan: PlanBody | None = None
    is_disabled: bool | None = None


class TenantShown(Shown):
    id: str
    name: str
    plan: dict[str, Any]
    created_ms: int
    disabled_ms: int | None


class AuditShown(Shown):
    number: int
    at_ms: int
    actor: str
    action: str
    target: str
    tenant: str | None
    outcome: str
    details: dict[str, Any]


class ViewBody(Body):
    page: str = Field(min_length=1, max_length=100, pattern=r"^[^\x00]+$")
    query: dict[str, Any] = Field(default_factory=dict)
    is_shared: bool = False


class ViewShown(Shown):
    id: str
    owner: str
    name: str
    page: str
    query: dict[str, Any]
    is_shared: bool
    changed_ms: int


class AlertBody(Body):
    id: Annotated[str, Field(max_length=32, pattern=r"^[0-9a-f]*$")] | None = None
    name: Label
    condition: dict[str, Any]
    channel: dict[str, Any]
    is_enabled: bool = True


class AlertShown(Shown):
    id: str
    name: str
    tenant: str | None
    condition: dict[str, Any]
    channel: dict[str, Any]
    is_enabled: bool
    tells: bool
    """Whether condition and channel are of a shape that is told; else nobody is."""
    changed_ms: int

    @classmethod
    def of(cls, alert: AlertSetting) -> "AlertShown":
        known = {"channel": shown_channel(alert.channel), "tells": condition_of(alert) is not None}
        return cls.model_validate(msgspec.structs.asdict(alert) | known)


def shown_channel(channel: Mapping[str, Any]) -> dict[str, Any]:
    """Of Slack's address the server only: who knows the rest may write there."""
    url = channel.get(SLACK)
    if not isinstance(url, str):
        return dict(channel)
    found = _SERVER.match(url)
    return dict(channel) | {SLACK: f"{found[0]}/…" if found else "…"}


def shown_plan(plan: Plan) -> dict[str, Any]:
    """Each field, also where it is the default."""
    return {
        "limits": msgspec.structs.asdict(plan.limits),
        "queues": {queue: msgspec.structs.asdict(limits) for queue, limits in plan.queues.items()},
        "default_priority": plan.default_priority,
        "highest_priority": plan.highest_priority,
        "uploads_mb": plan.uploads_mb,
    }
