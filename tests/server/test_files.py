"""What tools made is listed, told of and read, and nothing of it can run in a browser."""

from bullpen.agents.words import Submitted
from bullpen.server.site import Site
from tests.server.calling import Client


async def _asked(site: Site) -> Submitted:
    await site.agents.deposit("acme", 100)
    return await site.agents.submit("go", tenant="acme", model="gpt-4o")


async def test_what_a_run_made_is_listed_and_read(site: Site, client: Client) -> None:
    sent = await _asked(site)
    files = site.records.files
    await files.keep_artifact(sent.task_id, "call", "notes.txt", b"notes", mime="text/plain")
    drawn = await files.keep_artifact(sent.task_id, "call", "a ü.png", b"\x89PNG", mime="image/png")
    page = await client.get(f"/v1/runs/{sent.run_id}/artifacts")
    assert [one["name"] for one in page["items"]] == ["notes.txt", "a ü.png"]
    shown = await client.get(f"/v1/files/{drawn.id}")
    assert (shown["type"], shown["size"], shown["run_id"]) == ("image", 4, sent.run_id)
    picture = await client.http.get(f"/v1/files/{drawn.id}/content")
    assert (picture.content, picture.headers["content-type"]) == (b"\x89PNG", "image/png")
    assert picture.headers["content-disposition"] == "inline; filename*=UTF-8''a%20%C3%BC.png"


async def test_a_page_that_a_tool_made_is_saved_and_not_opened(site: Site, client: Client) -> None:
    sent = await _asked(site)
    page = await site.records.files.keep_artifact(
        sent.task_id, "call", "page.html", b"<script>alert(1)</script>", mime="text/html"
    )
    got = await client.http.get(f"/v1/files/{page.id}/content")
    assert got.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in got.headers["content-security-policy"]
    assert got.headers["x-content-type-options"] == "nosniff"


async def test_a_file_that_is_not_there_is_missing(client: Client) -> None:
    assert (await client.http.get("/v1/files/file_0/content")).status_code == 404
