"""The dashboard's files, and its one page for all other paths."""

from pathlib import Path

import httpx
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from bullpen.server.pages import add_pages
from bullpen.server.problems import Refused, answer_to
from tests.server.calling import BASE


def _client(folder: Path) -> httpx.AsyncClient:
    app = FastAPI()

    async def tell(request: Request, error: Exception) -> Response:
        return answer_to(error, request)

    app.add_exception_handler(Refused, tell)
    add_pages(app, folder)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE)


async def test_files_are_served_and_every_other_path_is_the_page(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>Bullpen</title>")
    (tmp_path / "assets" / "app-1234.js").write_text("start()")
    (tmp_path.parent / "secret.txt").write_text("secret")
    async with _client(tmp_path) as http:
        script = await http.get("/assets/app-1234.js")
        assert script.text == "start()"
        assert "immutable" in script.headers["cache-control"]
        for path in ("/", "/queues/mail", "/queues/mail/jobs/1"):
            page = await http.get(path)
            assert "<title>Bullpen" in page.text
            assert page.headers["cache-control"] == "no-cache"
        assert (await http.get("/assets/old-0000.js")).status_code == 404
        assert (await http.get("/v1/nothing")).json()["code"] == "not-found"
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt"):
            assert "secret" not in (await http.get(path)).text


async def test_without_a_dashboard_a_page_says_how_to_build_it(tmp_path: Path) -> None:
    async with _client(tmp_path / "not there") as http:
        page = await http.get("/")
    assert page.status_code == 200
    assert "make dashboard" in page.text
