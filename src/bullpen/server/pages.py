"""The dashboard: files that were built into the package, and its one page for every other path."""

from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from bullpen.server.problems import Refused

FOLDER = Path(__file__).parent / "dashboard"
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_ALWAYS_ASK = {"Cache-Control": "no-cache"}
_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Bullpen</title></head>
<body><main>
<h1>Bullpen serves its API</h1>
<p>The dashboard is not part of this installation: it comes with a released package.</p>
<p>From the sources, <code>make dashboard</code> builds it; then start the server again.</p>
<p>The API is described at <a href="/v1/openapi.json">/v1/openapi.json</a>.</p>
</main></body></html>
"""


def add_pages(app: FastAPI, folder: Path = FOLDER) -> None:
    """Serve what is in the folder; to be added last, since it answers all that nobody else does."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}

    @app.get("/{path:path}", include_in_schema=False, name="page")
    async def page(request: Request, path: str) -> Response:  # noqa: ARG001
        if path == "v1" or path.startswith("v1/"):
            raise Refused("not-found", "the API has no such path")
        if path in files:
            # Names under assets/ change with their contents.
            headers = _FOREVER if path.startswith("assets/") else _ALWAYS_ASK
            return FileResponse(files[path], headers=headers)
        if "index.html" not in files:
            return HTMLResponse(_NOT_BUILT, headers=_ALWAYS_ASK)
        if path.startswith("assets/"):
            raise Refused("not-found", "no such file")
        return FileResponse(files["index.html"], headers=_ALWAYS_ASK)
