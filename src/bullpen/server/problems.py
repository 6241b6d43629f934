"""Errors as HTTP tells them: one shape (RFC 9457), with a code that programs match on.

A job of another tenant and a job that never was are told in the same words. What goes wrong inside
is told without details: they may hold what is nobody's business, and are in the log under the
request's id.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response

from bullpen import errors
from bullpen.errors import BullpenError

logger = logging.getLogger("bullpen.server")

CONTENT_TYPE = "application/problem+json"
TYPE = "https://bullpen.dev/errors/"
_FIELD = re.compile(r"([a-z][a-z_]*(?:\.[a-z_]+|\[\d+\])*): ")
_RETRY_S = 1

STATUS: dict[type[BullpenError], int] = {
    errors.PayloadTooLarge: 413,
    errors.UsageError: 422,
    errors.JobMissing: 404,
    errors.QueueMissing: 404,
    errors.ScheduleMissing: 404,
    errors.RecordMissing: 404,
    errors.TenantRefused: 403,
    errors.GroupFull: 429,
    errors.MailboxFull: 429,
    errors.JobError: 409,
    errors.RecordTaken: 409,
    errors.RecordLimit: 409,
    errors.LastAdmin: 409,
    errors.UploadsFull: 429,
    errors.IdempotencyConflict: 409,
    errors.CreditsShort: 402,
    errors.ModelUnknown: 422,
    errors.StoreFull: 507,
    errors.StoreError: 503,
    errors.RecordsError: 503,
}
"""By the nearest class above the error's own."""

REFUSALS: dict[str, tuple[int, str]] = {
    "unauthenticated": (401, "Say who you are"),
    "forbidden": (403, "Not yours to do"),
    "csrf": (403, "The request may come from a foreign page"),
    "not-found": (404, "There is nothing here"),
    "method-not-allowed": (405, "Not done in this way"),
    "body-too-large": (413, "The body is too large"),
    "bad-request": (422, "The request cannot be read"),
    "too-many-attempts": (429, "Too many attempts"),
    "issuer-unavailable": (503, "The identity provider does not answer"),
    "internal": (500, "Something went wrong inside"),
}
"""The server's own codes: status and title."""


_CODES = {404: "not-found", 405: "method-not-allowed", 413: "body-too-large"}


class Refused(Exception):
    """The server itself says no; its code is one of REFUSALS."""

    def __init__(
        self, code: str, detail: str, *, field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.field = field
        self.headers = dict(headers or {})


class Outdated(Refused):
    """Credentials that were good once: whoever has them did not guess."""

    def __init__(self, detail: str) -> None:
        super().__init__("unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    field: str | None = None
    agent_code: str | None = None
    """What follows is told by routes of agents only."""
    retryable: bool | None = None
    user_facing_message: str | None = None
    required: int | None = None
    available: int | None = None


def forbidden(detail: str) -> Refused:
    return Refused("forbidden", detail)


_WRONG = 422
UNKNOWN_CALLER = "Your key or session is not valid: log in again, or ask for another key."
_NOT_THERE = "What this is about is not there, or not yours."
_LEFT = 499
"""What proxies write down of a caller who left before the answer."""


def answer_to(error: Exception, connection: HTTPConnection) -> Response:
    """The answer that tells of this error."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=_LEFT)  # nobody is there to read it, and nothing went wrong here
    request_id = str(connection.scope.get("state", {}).get("request_id", ""))
    problem, headers = problem_of(error, request_id)
    if connection.scope.get("state", {}).get("of_agents"):
        problem = _as_agents_tell(problem, error)
    if problem.status >= 500:
        logger.error("request %s ended with %s: %s", request_id, problem.code, error, exc_info=error)
    return Response(msgspec.json.encode(problem), problem.status, headers, CONTENT_TYPE)


def problem_of(error: Exception, request_id: str) -> tuple[Problem, dict[str, str]]:
    """The error in words, and the headers that go with it."""
    headers: dict[str, str] = {}
    match error:
        case Refused():
            status, title = REFUSALS[error.code]
            code, detail, field, headers = error.code, error.detail, error.field, error.headers
        case BullpenError():
            status = status_of(type(error))
            code, title, detail, field = error.code, _title(error), str(error), _field(error)
            if status >= 500:
                detail = title
            # Files stay for a day, or until somebody removes them: who asks again in a moment is refused again.
            if status in (429, 503) and not isinstance(error, errors.UploadsFull):
                headers = {"Retry-After": str(_RETRY_S)}
        case RequestValidationError() | WebSocketRequestValidationError():
            return problem_of(_refusal_of(error), request_id)
        case HTTPException():
            # What FastAPI calls 400 is a body that cannot be read: one status for all that is wrong with a request.
            code = _CODES.get(error.status_code, "bad-request")
            status, title = REFUSALS[code]
            detail, field, headers = str(error.detail), None, dict(error.headers or {})
        case _:
            status, title = REFUSALS["internal"]
            code, detail, field = "internal", "The log says more, under this request's id.", None
    return Problem(f"{TYPE}{code}", title, status, detail, code, request_id, field), headers


def _as_agents_tell(problem: Problem, error: Exception) -> Problem:
    """With the code of agents; what is wrong with a request is 400 there."""
    if problem.status == _WRONG:
        problem = msgspec.structs.replace(problem, status=400)
    code, retryable, message = _agents_words(problem, error)
    problem = msgspec.structs.replace(problem, agent_code=code, retryable=retryable, user_facing_message=message)
    if isinstance(error, errors.CreditsShort):
        problem = msgspec.structs.replace(problem, required=error.required, available=error.available)
    return problem


def _agents_words(problem: Problem, error: Exception) -> tuple[str, bool, str]:
    """Code, whether the same again may do, and what a user may read."""
    if isinstance(error, errors.AgentError):
        return error.agent_code, error.retryable, error.safe_message
    match problem.status:
        case 401:
            return "E002", False, UNKNOWN_CALLER
        case 403:
            return "E002", False, problem.detail
        case 404:
            return "E001", False, _NOT_THERE
        case 429:
            return "E999", True, problem.detail
        case status if status >= 500:
            return "E999", True, errors.AgentError.safe_message
        case _:
            return "E001", False, problem.detail


def status_of(kind: type[BullpenError]) -> int:
    return next((STATUS[one] for one in kind.__mro__ if one in STATUS), 500)


def _title(error: BullpenError) -> str:
    """The first sentence of what its class says of itself."""
    return re.split(r"[.;:]", (type(error).__doc__ or "").strip(), maxsplit=1)[0]


def _field(error: BullpenError) -> str | None:
    """Messages of wrong usage begin with the option that is wrong."""
    found = _FIELD.match(str(error)) if isinstance(error, errors.UsageError | errors.ModelUnknown) else None
    return found[1] if found else None


def _refusal_of(error: RequestValidationError | WebSocketRequestValidationError) -> Refused:
    """The first thing that is wrong; what was sent is not repeated."""
    first: dict[str, Any] = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path", "header")]
    field = ".".join(place) or None
    said = str(first["msg"])
    return Refused("bad-request", f"{field}: {said}" if field else said, field=field)
