"""A real Chromium that an agent drives, on pages of this machine; one address of it nobody may call."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.tools.browser import Browsers, find_browser
from bullpen.agents.tools.browsing import browser_action
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import NOT_MADE, Tool, ToolContext
from bullpen.builtin.addresses import Allowed
from bullpen.errors import BadData, ToolError, ToolTimeout
from tests.agents.tools.conftest import Drawer
from tests.agents.tools.site import Site

pytestmark = pytest.mark.xdist_group("dashboard")

OTHER_RUN = ToolContext(task_id="r2", key="r2/1")


async def _names(host: str, _port: int) -> Sequence[str]:
    """The names of this little world: one leads to where nobody may go."""
    known = {"shop.test": "127.0.0.1", "inside.test": "127.0.0.2", "both.test": "127.0.0.2"}
    if host not in known:
        raise OSError("not known")
    return ["127.0.0.1", "127.0.0.2"] if host == "both.test" else [known[host]]


@pytest.fixture
async def browsers() -> AsyncIterator[Browsers]:
    if find_browser() is None:
        pytest.skip("no Chromium")
    browsers = Browsers(allowed=Allowed.parse("127.0.0.1"), resolve=_names)
    yield browsers
    await browsers.close()


@pytest.fixture
def browse(browsers: Browsers) -> Tool:
    return browser_action(browsers)


async def test_a_form_is_filled_and_sent(browse: Tool, site: Site, ctx: ToolContext) -> None:
    url = site.put(
        "/",
        "<title>Shop</title><p>Welcome</p><form action=/thanks><input name=who placeholder='Your name'>"
        "<button>Send it</button></form><p hidden>unseen</p>",
    )
    site.put("/thanks", "<title>Thanks</title><p>We have it</p>")
    opened = await browse.call(ctx, {"action": "open", "url": url})
    assert (opened["status"], opened["url"], opened["title"]) == (200, url, "Shop")
    assert "Welcome" in opened["text"]
    assert "unseen" not in opened["text"]
    field, button = opened["controls"]
    assert (field["kind"], field["text"]) == ("input:text", "Your name")
    assert button["text"] == "Send it"
    await browse.call(ctx, {"action": "fill", "selector": field["selector"], "text": "Ada & co"})
    sent = await browse.call(ctx, {"action": "click", "selector": button["selector"]})
    assert (sent["title"], sent["text"]) == ("Thanks", "We have it")
    assert "/thanks?who=Ada+%26+co" in site.asked
    read = await browse.call(ctx, {"action": "read", "selector": "p"})
    assert (read["text"], "controls" in read) == ("We have it", False)


async def test_a_screenshot_is_a_file_of_the_run(browse: Tool, site: Site, ctx: ToolContext, drawer: Drawer) -> None:
    await browse.call(ctx, {"action": "open", "url": site.put("/", "<h1>Look</h1>")})
    shot = await browse.call(ctx, {"action": "screenshot"})
    kept = drawer.files[shot["artifact"]]
    assert kept.data.startswith(b"\x89PNG")
    assert (kept.mime, kept.metadata) == ("image/png", {"url": f"{site.url}/"})


async def test_a_long_page_is_cut_and_kept(browsers: Browsers, site: Site, ctx: ToolContext, drawer: Drawer) -> None:
    url = site.put("/", "<p>" + "word " * 500)
    opened = await browser_action(browsers, shown=100).call(ctx, {"action": "open", "url": url})
    assert len(opened["text"]) < 200
    assert "/page.txt (page.txt, " in opened["text_note"]
    assert drawer.named("page.txt").data.count(b"word") == 500


async def test_a_click_that_opens_another_page_leads_there(browse: Tool, site: Site, ctx: ToolContext) -> None:
    site.put("/more", "<title>More</title>there")
    await browse.call(ctx, {"action": "open", "url": site.put("/", "<a href=/more target=_blank>on</a>")})
    await browse.call(ctx, {"action": "click", "selector": "text=on"})
    async with asyncio.timeout(60):  # the other page comes when it comes
        while (read := await browse.call(ctx, {"action": "read"}))["text"] != "there":
            pass
    assert read["title"] == "More"


async def test_no_run_sees_what_another_has(browse: Tool, browsers: Browsers, site: Site, ctx: ToolContext) -> None:
    """Neither its page nor its cookies; nor does the run itself, once it ended."""
    script = "<script>document.write(document.cookie || 'new'); document.cookie = 'been=here'</script>"
    url = site.put("/", f"<body>{script}")
    assert (await browse.call(ctx, {"action": "open", "url": url}))["text"] == "new"
    assert (await browse.call(ctx, {"action": "open", "url": url}))["text"] == "been=here"
    with pytest.raises(ToolError, match="no page is open in this run's browser"):
        await browse.call(OTHER_RUN, {"action": "read"})
    assert (await browse.call(OTHER_RUN, {"action": "open", "url": url}))["text"] == "new"
    await browsers.end_run(ctx.task_id)
    await browsers.end_run(ctx.task_id)
    with pytest.raises(ToolError, match="no page is open"):
        await browse.call(ctx, {"action": "read"})
    assert (await browse.call(ctx, {"action": "open", "url": url}))["text"] == "new"
    assert (await browse.call(OTHER_RUN, {"action": "read"}))["text"] == "new"


async def test_a_browser_that_died_is_replaced(browse: Tool, browsers: Browsers, site: Site, ctx: ToolContext) -> None:
    url = site.put("/", "hello")
    await browse.call(ctx, {"action": "open", "url": url})
    assert browsers._browser is not None
    await browsers._browser.close()
    assert (await browse.call(ctx, {"action": "open", "url": url}))["text"] == "hello"


async def test_a_browser_gets_nothing_of_the_workers_environment(
    browse: Tool, site: Site, ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKER_SECRET", "hunter2-of-the-browser")
    await browse.call(ctx, {"action": "open", "url": site.put("/", "hello")})
    seen, told = 0, []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_browser = b"chrom" in (process / "cmdline").read_bytes().partition(b"\0")[0]
            surroundings = (process / "environ").read_bytes() if is_browser else b""
        except OSError:
            continue  # it ended, or is not ours
        seen += is_browser
        told += [process.name] if b"hunter2-of-the-browser" in surroundings else []
    assert seen
    assert told == []


async def test_a_run_that_ends_before_its_browser_is_there_leaves_none(browsers: Browsers, ctx: ToolContext) -> None:
    begun = asyncio.Event()
    new_context = browsers._new_context

    async def slowly(mine: Any) -> Any:
        begun.set()
        return await new_context(mine)

    browsers._new_context = slowly  # type: ignore[method-assign]  # to know when it has begun
    opening = asyncio.create_task(browser_action(browsers).call(ctx, {"action": "open", "url": "http://shop.test/"}))
    await begun.wait()
    await browsers.end_run(ctx.task_id)
    with pytest.raises(ToolError, match="the run has ended"):
        await opening
    assert browsers._browser is not None
    assert browsers._browser.contexts == []


# ── where it may not go ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("host", ["127.0.0.2", "127.2", "[::ffff:127.0.0.2]", "inside.test", "both.test"])
async def test_a_private_address_is_not_opened(browse: Tool, secret_site: Site, ctx: ToolContext, host: str) -> None:
    secret_site.put("/", "secret")
    for scheme in ("http", "https"):
        url = secret_site.url.replace("http", scheme).replace("127.0.0.2", host)
        with pytest.raises(ToolError, match="which is not called: see BULLPEN_OUTGOING_ALLOW"):
            await browse.call(ctx, {"action": "open", "url": url})
        # Chromium may have asked once more in between, and was refused again.
        with pytest.raises(ToolError, match=r"no page is open|which is not called"):
            await browse.call(ctx, {"action": "read"})
    assert secret_site.asked == []


@pytest.mark.parametrize("way", ["redirect", "https redirect", "script", "refresh", "click"])
async def test_no_way_leads_to_a_private_address(
    browse: Tool, site: Site, secret_site: Site, ctx: ToolContext, way: str
) -> None:
    secret_site.put("/", "secret")
    there = f"{secret_site.url}/"
    if way == "https redirect":
        there = there.replace("http:", "https:")
    match way:
        case "redirect" | "https redirect":
            url = site.put("/", "", status=302, headers={"Location": there})
        case "script":
            url = site.put("/", f"<script>location = {there!r}</script>")
        case "refresh":
            url = site.put("/", f"<meta http-equiv=refresh content='0;url={there}'>")
        case _:
            url = site.put("/", f"<a href={there}>go</a>")

    async def go() -> None:
        await browse.call(ctx, {"action": "open", "url": url})
        for _ in range(50):  # a page that leads elsewhere does so when it likes
            await browse.call(ctx, {"action": "click", "selector": "body" if way != "click" else "a"})

    with pytest.raises(ToolError, match="which is not called"):
        await go()
    assert secret_site.asked == []


async def test_nothing_that_a_page_names_is_fetched_from_a_private_address(
    browse: Tool, site: Site, secret_site: Site, ctx: ToolContext
) -> None:
    """Neither pictures, frames and scripts, nor what a script asks for or a socket reaches."""
    secret_site.put("/", "secret", headers={"Access-Control-Allow-Origin": "*"})
    at, port = f"{secret_site.url}/", secret_site.url.rpartition(":")[2]
    url = site.put(
        "/",
        f"<img src={at}a.png><iframe src={at}b></iframe><script src={at}c.js></script><p id=p>…</p><script>"
        f"const closed = new Promise(done => {{ const s = new WebSocket('ws://inside.test:{port}/s');"
        "s.onerror = () => done('no socket'); s.onopen = () => done('socket') });"
        f"Promise.all([fetch('{at}d').then(a => a.text()).catch(() => 'no fetch'), closed])"
        ".then(all => { p.textContent = all.join(); p.className = 'done' })</script>",
    )
    await browse.call(ctx, {"action": "open", "url": url})
    read = await browse.call(ctx, {"action": "read", "selector": "p.done"})
    assert "secret" not in read["text"]
    assert "no socket" in read["text"]
    assert secret_site.asked == []


async def test_a_name_is_looked_up_by_the_proxy_alone(browse: Tool, site: Site, ctx: ToolContext) -> None:
    """The name is in no name server: only what was looked at is connected to."""
    url = site.put("/", "shop").replace("127.0.0.1", "shop.test")
    assert (await browse.call(ctx, {"action": "open", "url": url}))["text"] == "shop"
    assert site.hosts[0].startswith("shop.test:")


async def test_files_of_the_worker_are_out_of_reach(browse: Tool, site: Site, ctx: ToolContext) -> None:
    for url in ("file:///etc/passwd", "chrome://version", "view-source:http://127.0.0.1/", "javascript:1", "data:,x"):
        with pytest.raises(ToolError, match="url: an address that begins with https"):
            await browse.call(ctx, {"action": "open", "url": url})
    url = site.put("/", "<a href=file:///etc/passwd>go</a>")
    await browse.call(ctx, {"action": "open", "url": url})
    clicked = await browse.call(ctx, {"action": "click", "selector": "a"})
    assert (clicked["url"], clicked["text"]) == (url, "go")


# ── what does not work ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"action": "open"}, "url: an address"),
        ({"action": "open", "url": "not an address"}, "url: an address"),
        ({"action": "open", "url": "http://"}, "url: an address"),
        ({"action": "open", "url": "http://[::1"}, "url: an address"),
        ({"action": "click"}, "selector: click needs one"),
        ({"action": "fill", "text": "x", "selector": " "}, "selector: fill needs one"),
    ],
)
async def test_what_is_missing_is_named(browse: Tool, ctx: ToolContext, arguments: Any, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await browse.call(ctx, arguments)


def test_an_action_that_is_none_is_refused() -> None:
    with pytest.raises(BadData, match=r"Invalid enum value 'dance' - at `\$.action`"):
        browser_action(Browsers()).check({"action": "dance"})


async def test_a_page_that_is_not_there_is_told(browse: Tool, site: Site, ctx: ToolContext) -> None:
    opened = await browse.call(ctx, {"action": "open", "url": f"{site.url}/none"})
    assert (opened["status"], opened["text"]) == (404, "nothing here")
    with pytest.raises(ToolError, match=r"the browser: .*ERR_"):
        await browse.call(ctx, {"action": "open", "url": "https://127.0.0.1:9/"})


async def test_what_is_not_on_the_page_takes_its_time_and_is_told(
    browsers: Browsers, site: Site, ctx: ToolContext
) -> None:
    await browser_action(browsers).call(ctx, {"action": "open", "url": site.put("/", "<p>one<p>two")})
    browse = browser_action(browsers, page_s=0.5)
    with pytest.raises(ToolTimeout, match=r"within 0\.5 s"):
        await browse.call(ctx, {"action": "click", "selector": "#none"})
    with pytest.raises(ToolError, match="resolved to 2 elements"):
        await browser_action(browsers).call(ctx, {"action": "click", "selector": "p"})


async def test_a_page_that_hangs_does_not_hold_the_tool(browsers: Browsers, site: Site, ctx: ToolContext) -> None:
    url = site.put("/", "<p>here<script>setTimeout(() => { for (;;); }, 0)</script>")
    browse = browser_action(browsers, page_s=0.5)

    async def go() -> None:
        await browse.call(ctx, {"action": "open", "url": url})
        await browse.call(ctx, {"action": "read"})

    with pytest.raises(ToolTimeout):
        await go()
    await browsers.end_run(ctx.task_id)
    site.put("/", "fine")
    assert (await browser_action(browsers).call(ctx, {"action": "open", "url": url}))["text"] == "fine"


async def test_without_playwright_it_says_what_to_install(
    browse: Tool, ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "playwright.async_api", None)
    with pytest.raises(ToolError, match=r"pip install 'bullpen\[browser\]'"):
        await browse.call(ctx, {"action": "open", "url": "http://shop.test/"})


async def test_without_a_browser_it_says_what_to_install(ctx: ToolContext) -> None:
    browsers = Browsers(program="/no/such/chromium", allowed=Allowed.parse("127.0.0.1"), resolve=_names)
    with pytest.raises(ToolError, match="install Chromium"):
        await browser_action(browsers).call(ctx, {"action": "open", "url": "http://shop.test/"})
    await browsers.close()


async def test_what_a_crash_means(browse: Tool, browsers: Browsers, ctx: ToolContext) -> None:
    """To look again is fine; of a click nobody knows, and the model is told so."""
    assert browse.policy is Policy.RECONCILE
    assert browse.reconcile is not None
    for action in ("open", "read", "screenshot"):
        assert await browse.reconcile(ctx, {"action": action}) is NOT_MADE
    for action in ("click", "fill"):
        assert "may or may not have had an effect" in await browse.reconcile(ctx, {"action": action})
    assert browser_action(browsers, ask_person=True).policy is Policy.ONCE
