"""Files of runs: what tools made and what was given, each with its bytes."""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bullpen.errors import BadOption
from bullpen.records.files.quota import Quota
from bullpen.records.files.sizes import check_size
from bullpen.records.files.words import FileKind, FilePage, RunFile
from bullpen.server.access.allowing import RunReader, allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note
from bullpen.server.models.base import Page
from bullpen.server.models.files import FileShown
from bullpen.server.routes.filtering import tenant_of, tenant_to_charge
from bullpen.server.routes.routing import Cursor, Name, Text, TheSite, agents_family, uploads_family

router = agents_family("files")
uploads = uploads_family("files")

_FILE = "/files/{file_id}"
_SHOWN_IN_PLACE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""All else is saved by a browser, not opened: nothing of it can run here."""
_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}
_TAKES = {
    "requestBody": {
        "description": "The file itself. Its content type is that of the file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_SAYS_NOTHING = frozenset({"", "application/octet-stream", "application/x-www-form-urlencoded"})
"""What clients send who were not told what a file is: its name says more."""
PageSize = Annotated[int, Query(ge=1, le=500)]
FileAdder = Annotated[Caller, allowed("tasks:add")]


@uploads.post("/files", name="file.add", status_code=201, openapi_extra=_TAKES)
async def add(
    request: Request,
    caller: FileAdder,
    site: TheSite,
    name: Annotated[str, Query(min_length=1, max_length=255)],
    tenant: Text = None,
) -> FileShown:
    """A file for a run: the body is the file, and `files` of a task names its id. Unused, it goes after a day."""
    of = tenant_to_charge(caller, tenant)
    note(request, tenant=of)
    mime = _mime_told(request)
    told = request.headers.get("content-length", "")
    length = int(told) if told.isdecimal() else 0
    check_size(length)  # before the first byte of one that is too large
    plan_of = await site.plans.tenant(of)  # TenantRefused for one that is disabled
    quota = Quota(of, None if plan_of is None else plan_of.plan.uploads_mb)
    await site.records.files.check_room(quota, length)
    kept = await site.records.files.add_input(of, name, request.stream(), mime=mime, quota=quota)
    note(request, target=kept.id, name=kept.name, size=kept.size)
    return FileShown.of(kept)


def _mime_told(request: Request) -> str | None:
    told = request.headers.get("content-type", "").strip()
    plain = told.partition(";")[0].strip().lower()
    if plain == "multipart/form-data":
        raise BadOption("mime: the body is the file itself, not a form; send it with the type of the file")
    return None if plain in _SAYS_NOTHING else told


@router.get("/files")
async def files(
    caller: RunReader,
    site: TheSite,
    kind: FileKind | None = None,
    tenant: Text = None,
    limit: PageSize = 50,
    cursor: Cursor = None,
) -> Page[FileShown]:
    """What was given and what was made, the newest first."""
    page = await site.records.files.page(tenant=tenant_of(caller, tenant), kind=kind, limit=limit, cursor=cursor)
    return _shown(page)


@router.get("/runs/{run_id}/inputs")
async def inputs(
    caller: RunReader, site: TheSite, run_id: Name, limit: PageSize = 500, cursor: Cursor = None
) -> Page[FileShown]:
    """What it was given, as it came."""
    await site.records.runs.get(run_id, tenant=caller.tenant)
    page = await site.records.files.page_of_run(
        run_id, FileKind.INPUT, tenant=caller.tenant, limit=limit, cursor=cursor
    )
    return _shown(page)


@router.get("/runs/{run_id}/artifacts")
async def artifacts(
    caller: RunReader, site: TheSite, run_id: Name, limit: PageSize = 500, cursor: Cursor = None
) -> Page[FileShown]:
    """What its tools made, as it came."""
    await site.records.runs.get(run_id, tenant=caller.tenant)
    page = await site.records.files.page_of_run(
        run_id, FileKind.ARTIFACT, tenant=caller.tenant, limit=limit, cursor=cursor
    )
    return _shown(page)


def _shown(page: FilePage) -> Page[FileShown]:
    return Page(items=[FileShown.of(one) for one in page.files], next_cursor=page.cursor)


@router.get(_FILE)
async def file(caller: RunReader, site: TheSite, file_id: Name) -> FileShown:
    """What it is, without its bytes."""
    return FileShown.of(await site.records.files.get(file_id, tenant=caller.tenant))


@router.delete(_FILE, name="file.remove", status_code=204)
async def remove(request: Request, caller: FileAdder, site: TheSite, file_id: Name) -> Response:
    """An input that no run was given. What a run has stays as long as the run."""
    found = await site.records.files.get(file_id, tenant=caller.tenant)
    note(request, tenant=found.tenant, name=found.name)
    await site.records.files.remove_input(file_id, tenant=caller.tenant)
    return Response(status_code=204)


@router.get(f"{_FILE}/content", response_class=StreamingResponse, responses=_BYTES)
async def content(caller: RunReader, site: TheSite, file_id: Name) -> StreamingResponse:
    """Its bytes. Pictures open in a browser; anything else is saved."""
    found = await site.records.files.get(file_id, tenant=caller.tenant)
    parts = site.records.files.parts(file_id, tenant=caller.tenant)
    return StreamingResponse(parts, media_type=found.mime, headers=_headers(found))


def _headers(file: RunFile) -> dict[str, str]:
    way = "inline" if file.mime in _SHOWN_IN_PLACE else "attachment"
    return {
        "Content-Disposition": f"{way}; filename*=UTF-8''{quote(file.name, safe='')}",
        "Content-Length": str(file.size),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=3600, immutable",
    }
