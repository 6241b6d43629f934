"""The OpenAPI description: what FastAPI finds, with the problem answers that every route may give."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from bullpen.server.problems import CONTENT_TYPE
from bullpen.server.routes import remote

_ANSWERS = {
    401: "The caller did not say who they are.",
    403: "The caller may not do this.",
    404: "There is no such thing, or it is another tenant's.",
    409: "It is not in a state that allows this, or the idempotency key was used for something else.",
    413: "The body or the payload is too large.",
    422: "The request is wrong; `field` says where.",
    429: "Too much or too often; try again after `Retry-After` seconds, where it is told.",
    500: "A fault of the server.",
    503: "The store, the records or the identity provider cannot be reached; try again.",
    507: "The store is full.",
}
_OF_AGENTS = {
    400: "The request is wrong; `field` says where.",
    402: "There are not enough credits; `required` and `available` say how many, in micro-credits.",
}
_AGENTS = {"tasks", "runs", "credits", "files"}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable: what programs match on."},
        "field": {"type": "string", "description": "Which part of the request is wrong."},
        "request_id": {"type": "string"},
        "agent_code": {"type": "string", "description": "Of agents: E001 to E014, or E999."},
        "retryable": {"type": "boolean", "description": "Whether the same call may succeed later."},
        "user_facing_message": {"type": "string"},
        "required": {"type": "integer", "description": "Micro-credits."},
        "available": {"type": "integer", "description": "Micro-credits."},
    },
}


def describe(app: FastAPI) -> dict[str, Any]:
    """Made once, with the first question."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts = found.setdefault("components", {})
        schemas = parts.setdefault("schemas", {})
        schemas["Problem"] = _PROBLEM
        schemas |= remote.SCHEMAS
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        parts["responses"] = {f"Problem{status}": _answer(text) for status, text in (_ANSWERS | _OF_AGENTS).items()}
        parts["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "bullpen_session"},
        }
        for path in found["paths"].values():
            for operation in path.values():
                _add_problems(operation)
        app.openapi_schema = found
    return app.openapi_schema


def _answer(text: str) -> dict[str, Any]:
    return {"description": text, "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _add_problems(operation: dict[str, Any]) -> None:
    answers = operation["responses"]
    answers.pop("422", None)  # FastAPI's own shape, which is not ours
    for status in _ANSWERS | (_OF_AGENTS if _AGENTS & set(operation.get("tags", ())) else {}):
        answers.setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
    operation["security"] = [{"bearer": []}, {"session": []}, {}]
