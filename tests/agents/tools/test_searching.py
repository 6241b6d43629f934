"""Search: in a folder by a real index, and by a server that speaks as SearXNG does."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.search_folder import FolderSearch
from bullpen.agents.tools.search_searxng import SearxngSearch
from bullpen.agents.tools.searching import search_from_environment, web_search
from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import BadData, BadOption, ToolError
from tests.agents.tools.site import Site


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    shelf = tmp_path / "shelf"
    (shelf / "deep" / "er").mkdir(parents=True)
    (shelf / "tea.md").write_text("Drinks\n\n# How to make tea\n\nBoil water, then wait for the leaves.\n")
    (shelf / "deep" / "er" / "coffee.txt").write_text("Grind the beans. Water at 93 degrees, not boiling.\n")
    (shelf / "page.html").write_text(
        "<html><head><title>Cocoa &amp; milk</title><style>.boil{}</style></head><body><h1>Cocoa</h1>"
        "<p>Warm the milk</p><script>var boiling = 1</script></body></html>"
    )
    (shelf / ".hidden.md").write_text("# Boiling secrets")
    (shelf / "data.bin").write_bytes(b"boiling")
    return shelf


async def _search(backend: FolderSearch, query: str, limit: int = 8) -> list[dict[str, Any]]:
    result = await web_search(backend).call(ToolContext(task_id="r", key="r/1"), {"query": query, "limit": limit})
    found: list[dict[str, Any]] = result["results"]
    return found


async def test_a_folder_is_searched_by_words_whatever_their_form(shelf: Path) -> None:
    backend = FolderSearch(shelf)
    found = await _search(backend, "boiling water")
    assert {one["url"] for one in found} == {"tea.md", "deep/er/coffee.txt"}
    (tea,) = await _search(backend, "leaf leaves")
    assert tea == {"title": "How to make tea", "url": "tea.md", "snippet": tea["snippet"]}
    assert "wait for the leaves" in tea["snippet"]
    await backend.close()
    await backend.close()


async def test_of_html_only_what_a_reader_sees_is_found(shelf: Path) -> None:
    backend = FolderSearch(shelf, base_url="https://wiki.example.com/")
    (cocoa,) = await _search(backend, "milk")
    assert (cocoa["title"], cocoa["url"]) == ("Cocoa & milk", "https://wiki.example.com/page.html")
    assert "page.html" not in {one["url"] for one in await _search(backend, "boiling boil")}
    await backend.close()


async def test_if_no_file_has_all_words_those_with_some_are_found(shelf: Path) -> None:
    backend = FolderSearch(shelf)
    assert [one["url"] for one in await _search(backend, "tea astronaut")] == ["tea.md"]
    assert await _search(backend, "astronaut") == []
    assert len(await _search(backend, "water", limit=1)) == 1
    await backend.close()


async def test_changes_are_found_also_by_the_next_process(shelf: Path, tmp_path: Path) -> None:
    index = tmp_path / "index.db"
    backend = FolderSearch(shelf, index=index)
    assert len(await _search(backend, "leaves")) == 1
    (shelf / "tea.md").write_text("# Tea\n\nBags will do.\n")
    (shelf / "new.md").write_text("Maple leaves")
    (shelf / "page.html").unlink()
    assert [one["url"] for one in await _search(backend, "leaves")] == ["new.md"]
    assert await _search(backend, "milk") == []
    await backend.close()
    again = FolderSearch(shelf, index=index)
    assert [one["url"] for one in await _search(again, "bags")] == ["tea.md"]
    await again.close()


@pytest.mark.parametrize("query", ['"', "* OR (", "NEAR(a b", "title:x", "a'b;--", "—", "\0"])
async def test_no_words_break_the_search(shelf: Path, query: str) -> None:
    backend = FolderSearch(shelf)
    assert await _search(backend, query) == []
    await backend.close()


async def test_links_out_of_the_folder_are_not_followed(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "private.md").write_text("# Private zebra")
    (shelf / "link.md").symlink_to(tmp_path / "private.md")
    (shelf / "linked").symlink_to(tmp_path)
    backend = FolderSearch(shelf)
    assert await _search(backend, "zebra") == []
    await backend.close()


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"folder: .*is no folder"):
        FolderSearch(tmp_path / "none")


# ── SearXNG ──────────────────────────────────────────────────────────────────────────────


ANSWER = {
    "query": "tea",
    "number_of_results": 0,
    "results": [
        {"url": "https://a.example/1", "title": "One", "content": "About tea", "engine": "x", "score": 1.0},
        {"url": "https://a.example/2", "title": "", "content": None, "publishedDate": None},
        {"url": "https://a.example/3", "title": "Three"},
    ],
    "answers": [],
    "unresponsive_engines": [["y", "timeout"]],
}


async def test_a_searxng_server_is_asked(site: Site, ctx: ToolContext) -> None:
    site.put("/search", json.dumps(ANSWER), kind="application/json")
    tool = web_search(SearxngSearch(site.url + "/", language="en", categories="general"))
    result = await tool.call(ctx, {"query": " green\n tea & more", "limit": 2})
    assert result == {
        "query": "green tea & more",
        "results": [
            {"title": "One", "url": "https://a.example/1", "snippet": "About tea"},
            {"title": "https://a.example/2", "url": "https://a.example/2"},
        ],
    }
    asked = parse_qs(urlsplit(site.asked[0]).query)
    assert asked == {"q": ["green tea & more"], "format": ["json"], "language": ["en"], "categories": ["general"]}


@pytest.mark.parametrize(
    "status, body, told",
    [
        (403, "", r"refuses to answer as JSON: allow it under search\.formats"),
        (429, "", "asked too often"),
        (500, "", "answered 500"),
        (302, "", "answered 302"),
        (200, "<html>", "no answer"),
        (200, '{"hits": []}', "no answer"),
    ],
)
async def test_what_goes_wrong_there_is_told(site: Site, ctx: ToolContext, status: int, body: str, told: str) -> None:
    site.put("/search", body, status=status)
    with pytest.raises(ToolError, match=f"the search server.*{told}"):
        await web_search(SearxngSearch(site.url)).call(ctx, {"query": "tea"})


async def test_a_server_that_is_away_is_told(ctx: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"the search server: .*cannot be reached"):
        await web_search(SearxngSearch("http://127.0.0.1:9")).call(ctx, {"query": "tea"})


@pytest.mark.parametrize("url", ["", "search.example.com", "ftp://a.example", "https://a.example/?q=1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadOption, match="url: the address of a SearXNG server"):
        SearxngSearch(url)


# ── the tool ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": "x", "limit": 0}, {"query": "x", "limit": 21}])
async def test_arguments_that_do_not_fit_are_refused(shelf: Path, arguments: Any) -> None:
    with pytest.raises(BadData, match="arguments: of 'web_search'"):
        web_search(FolderSearch(shelf)).check(arguments)


async def test_a_query_of_blanks_is_refused(shelf: Path, ctx: ToolContext) -> None:
    with pytest.raises(ToolError, match="query: has no words in it"):
        await web_search(FolderSearch(shelf)).call(ctx, {"query": " \n\t"})


def test_a_search_may_be_made_again(shelf: Path) -> None:
    assert web_search(FolderSearch(shelf)).policy is Policy.READ_ONLY


def test_a_setting_names_what_searches(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BULLPEN_SEARCH", raising=False)
    assert search_from_environment() is None
    monkeypatch.setenv("BULLPEN_SEARCH", "https://search.example.com")
    assert isinstance(search_from_environment(), SearxngSearch)
    monkeypatch.setenv("BULLPEN_SEARCH", str(shelf))
    assert isinstance(search_from_environment(), FolderSearch)
    monkeypatch.setenv("BULLPEN_SEARCH", "no-such-folder")
    with pytest.raises(BadOption, match="folder"):
        search_from_environment()
