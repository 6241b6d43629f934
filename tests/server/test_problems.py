"""Errors of routes of agents have a code of agents, whether to try again, and words for users; of others, none."""

import msgspec
import pytest
from starlette.requests import Request

from bullpen.errors import (
    AgentError,
    BadOption,
    CreditsShort,
    GroupFull,
    RecordMissing,
    RecordsUnavailable,
    TenantRefused,
    WrongState,
)
from bullpen.server.problems import answer_to, forbidden


def _told(error: Exception, *, of_agents: bool = True) -> dict[str, object]:
    request = Request({"type": "http", "headers": [], "state": {"request_id": "r", "of_agents": of_agents}})
    told: dict[str, object] = msgspec.json.decode(answer_to(error, request).body)
    return told


@pytest.mark.parametrize(
    "error, status, code, retryable",
    [
        (BadOption("prompt: a text"), 400, "E001", False),
        (RecordMissing("no run 'x'"), 404, "E001", False),
        (WrongState("run 'x' is over"), 409, "E001", False),
        (forbidden("this needs tasks:add"), 403, "E002", False),
        (TenantRefused("tenant 'acme' is disabled"), 403, "E002", False),
        (CreditsShort("too few"), 402, "E003", False),
        (GroupFull("too many"), 429, "E999", True),
        (RecordsUnavailable("postgres://secret is away"), 503, "E999", True),
        (RuntimeError("secret"), 500, "E999", True),
    ],
)
def test_each_has_all_three(error: Exception, status: int, code: str, retryable: bool) -> None:
    told = _told(error)
    assert (told["status"], told["agent_code"], told["retryable"]) == (status, code, retryable)
    assert told["user_facing_message"]
    assert "secret" not in str(told["user_facing_message"])
    if status >= 500:
        assert told["user_facing_message"] == AgentError.safe_message
    others = _told(error, of_agents=False)
    assert not {"agent_code", "retryable", "user_facing_message"} & others.keys()
