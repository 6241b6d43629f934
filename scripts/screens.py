"""Pictures of every page, busy, empty and in trouble, light and dark, wide and narrow: `make screens`.

They go to screens/, which git does not keep. `screens.py overview jobs` takes only those pages, and
`screens.py --docs` the four that the documentation shows.
"""

import asyncio
import json
import os
import random
import re
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.async_api import Browser, FloatRect, Page, Route, async_playwright
from screen_runs import runs_in
from servers import find_browser

from bullpen.clock import SYSTEM_CLOCK
from bullpen.records.database import database_at
from bullpen.records.model.minutes import BOUNDS_MS, MINUTE_MS
from bullpen.records.records import Records
from bullpen.records.tables.model import minute

_ROOT = Path(__file__).resolve().parents[1]
_OUT = _ROOT / "screens"
_DOCS = _ROOT / "docs" / "images"
_FOR_DOCS = {"overview": "light", "queue": "dark", "job-parked": "light", "flow": "dark"}
_WARM_S = 25
_HIGHEST = 2_400
_WIDTHS = (1440, 390)
_THEMES = ("light", "dark")
_PAGES = {
    "overview": "/",
    "queue": "/queues/demo-mail",
    "groups": "/queues/demo-images?part=groups",
    "tenants": "/queues/demo-images?part=tenants",
    "limits": "/queues/demo-mail?part=limits",
    "jobs": "/jobs",
    "job-failed": "{failed}",
    "job-running": "{running}",
    "job-parked": "{parked}",
    "flow": "{flow}",
    "runs": "/runs",
    "run": "{run}",
    "run-live": "{run-live}",
    "run-asking": "{run-asking}",
    "run-made": "{run-made}",
    "run-research": "{run-research}",
    "replay": "{replay}",
    "compare": "{compare}",
    "credits": "/credits",
    "failures": "/failures",
    "dead-letters": "/dead-letters",
    "schedules": "/schedules",
    "workers": "/workers",
    "audit": "/audit",
    "settings": "/settings",
    "keys": "/settings/keys",
    "users": "/settings/users",
    "settings-tenants": "/settings/tenants",
    "alerts": "/settings/alerts",
    "webhooks": "/settings/webhooks",
}
_OF_RUNS = {"runs", "run", "run-live", "run-asking", "run-made", "run-research", "replay", "compare", "credits"}
_FINDING_S = 90
_KINDS = {
    "{failed}": ("queue=demo-mail&state=failed", ""),
    "{running}": ("queue=demo-reports&name=report&state=active", ""),
    "{parked}": ("queue=demo-orders&state=delayed", ""),
    "{flow}": ("queue=demo-orders&name=ship&state=waiting-children", "/flow"),
}
"""Jobs that a picture is taken of, by what the list of jobs is asked for."""
_TROUBLE = {
    "type": "https://bullpen.dev/errors/store-unavailable",
    "title": "The store does not answer",
    "status": 503,
    "detail": "redis://queue.internal:6379 refused the connection; it is tried again",
    "code": "store-unavailable",
    "request_id": "7f3a9c1e",
}
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<include>/etc/fonts/fonts.conf</include>{aliases}</fontconfig>"""
_ALIAS = (
    '<match target="pattern"><test name="family"><string>{name}</string></test>'
    '<edit name="family" mode="prepend" binding="strong"><string>Inter</string><string>Liberation Sans</string></edit>'
    "</match>"
)


async def main(wanted: list[str]) -> None:
    program = find_browser()
    if program is None:
        raise SystemExit("no Chromium; `make servers` installs it")
    _OUT.mkdir(exist_ok=True)
    pages = {name: path for name, path in _PAGES.items() if not wanted or name in wanted}
    with tempfile.TemporaryDirectory() as folder:
        fonts = _fonts(Path(folder))
        async with async_playwright() as playwright:
            environment: dict[str, str | float | bool] = {**os.environ, "FONTCONFIG_FILE": str(fonts)}
            flags = ["--no-sandbox", "--disable-gpu"]
            browser = await playwright.chromium.launch(executable_path=program, args=flags, env=environment)
            async with _running(Path(folder) / "busy", "dev", "--port", "0") as url:
                await _add_history(Path(folder) / "busy" / ".bullpen" / "demo-records.db")
                await asyncio.to_thread(_furnish, url)
                await asyncio.sleep(_WARM_S)
                if wanted == ["--docs"]:
                    await _take_for_docs(browser, url)
                    return
                await _take_both(browser, url, {name: path for name, path in pages.items() if name not in _OF_RUNS})
            # Apart from the demo, whose agents have other tools.
            runs = Path(folder) / "runs"
            async with _running(runs, "server", "--port", "0") as url, runs_in(runs / ".bullpen") as places:
                there = {name: places.get(path, path) for name, path in pages.items() if name in _OF_RUNS}
                await _take_both(browser, url, there)
            async with _running(Path(folder) / "empty", "server", "--port", "0") as url:
                await _take(browser, url, "empty", {name: path for name, path in pages.items() if path[0] == "/"})
            if not wanted or "login" in wanted:
                await _make_user(Path(folder) / "closed")
                async with _running(Path(folder) / "closed", "server", "--port", "0") as url:
                    await _take(browser, url, "closed", {"login": "/"})
            await browser.close()


async def _make_user(folder: Path) -> None:
    """From the first one on everybody is asked who they are."""
    folder.mkdir()  # noqa: ASYNC240 - nobody waits
    records = await Records.open(f"sqlite:{folder / '.bullpen' / 'records.db'}")
    await records.users.create("ann", "correct horse battery", role="admin")
    await records.close()


async def _take_for_docs(browser: Browser, url: str) -> None:
    _DOCS.mkdir(exist_ok=True)
    for name, theme in _FOR_DOCS.items():
        context = await browser.new_context(
            viewport={"width": 1280, "height": 800},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
        )
        page = await context.new_page()
        await _settle(page, url + await _place(url, _PAGES[name]))
        await page.locator(".side .live.tone-good").wait_for()  # a busy machine falls behind for a moment
        await page.screenshot(path=_DOCS / f"{name.partition('-')[0]}.png")
        await context.close()


async def _take_both(browser: Browser, url: str, pages: dict[str, str]) -> None:
    await _take(browser, url, "busy", pages)
    await _take(browser, url, "error", pages, is_in_trouble=True)


async def _take(browser: Browser, url: str, kind: str, pages: dict[str, str], *, is_in_trouble: bool = False) -> None:
    for width in _WIDTHS:
        for theme in _THEMES:
            context = await browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if theme == "dark" else "light",
                device_scale_factor=2 if width < 500 else 1,
                reduced_motion="reduce",
            )
            page = await context.new_page()
            if is_in_trouble:
                await page.route(re.compile(r"/v1/(?!me)"), _refuse)
            for name, path in pages.items():
                await _shoot(page, url + await _place(url, path), _OUT / f"{name}-{kind}-{theme}-{width}.png")
            await context.close()
    print(f"{kind}: {len(pages) * len(_WIDTHS) * len(_THEMES)} pictures")


async def _settle(page: Page, address: str) -> None:
    await page.goto(address)
    await page.locator("h1").wait_for()
    await page.locator(".skeleton").first.wait_for(state="detached")
    # The log of a run that is over, and then what it tells of, such as artifacts.
    await page.locator("[aria-busy=true]").first.wait_for(state="detached")
    await page.locator(".skeleton").first.wait_for(state="detached")
    await page.wait_for_timeout(700)  # the first live updates


async def _shoot(page: Page, address: str, file: Path) -> None:
    await _settle(page, address)
    width, height = await page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    shown: FloatRect = {"x": 0, "y": 0, "width": width, "height": min(height, _HIGHEST)}
    await page.screenshot(path=file, clip=shown, full_page=True)


async def _refuse(route: Route) -> None:
    await route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(_TROUBLE))


@asynccontextmanager
async def _running(folder: Path, *words: str) -> AsyncIterator[str]:
    """A command of Bullpen in a folder of its own, and the address that it says."""
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240 - nobody waits
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BULLPEN_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-u", "-m", "bullpen.cli", *words, cwd=folder, env=environment, stdout=PIPE
    )
    reading: asyncio.Task[None] | None = None
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        reading = asyncio.create_task(_drain(process))
        yield line.split()[-1]
    finally:
        process.terminate()
        await process.wait()
        if reading is not None:
            await reading


async def _drain(process: Process) -> None:
    assert process.stdout is not None
    while await process.stdout.readline():
        pass


async def _place(url: str, path: str) -> str:
    """Where a job of this kind is now; any other path as it is."""
    if path not in _KINDS:
        return path
    query, part = _KINDS[path]
    given_up = time.monotonic() + _FINDING_S
    while not (rows := await asyncio.to_thread(_jobs, f"{url}/v1/jobs?limit=1&{query}")):
        if time.monotonic() > given_up:
            raise SystemExit(f"the demo had no job of {query} within {_FINDING_S} s")
        await asyncio.sleep(0.1)
    return f"/queues/{rows[0]['queue']}/jobs/{rows[0]['id']}{part}"


def _jobs(address: str) -> list[dict[str, str]]:
    with urlopen(address) as answer:
        found: list[dict[str, str]] = json.load(answer)["items"]
    return found


_FURNITURE: list[tuple[str, str, object]] = [
    ("PUT", "/v1/views/Declined%20cards", {"page": "/jobs", "query": {"name": "charge", "state": "failed"}}),
    ("PUT", "/v1/views/Globex%20lately", {"page": "/jobs", "query": {"tenant": "globex", "within": "3600000"}}),
    ("PUT", "/v1/views/All", {"page": "/jobs", "query": {}, "is_shared": True}),
    ("POST", "/v1/queues/demo-reports/pause", {}),
    ("POST", "/v1/queues/demo-reports/resume", {}),
    ("PUT", "/v1/queues/demo-mail/limits", {"concurrency": 20, "rate": {"max": 50, "per": 1}}),
    ("PUT", "/v1/queues/demo-images/groups/globex", {"weight": 3, "concurrency": 8}),
    ("POST", "/v1/tenants", {"id": "acme", "name": "Acme", "plan": {"limits": {"concurrency": 12, "weight": 2}}}),
    ("POST", "/v1/webhooks", {"name": "Our CRM", "url": "https://crm.example.com/bullpen", "queues": ["demo-none"]}),
    (
        "PUT",
        "/v1/alerts",
        {"name": "Failures", "condition": {"failed": 10}, "channel": {"webhook": "https://ops.example.com"}},
    ),
]


def _furnish(url: str) -> None:
    """What people leave behind: views, limits, a plan, an alert, and all of it in the audit log."""
    for method, path, body in _FURNITURE:
        headers = {"Content-Type": "application/json", "X-Bullpen": "screens"}
        with urlopen(Request(url + path, json.dumps(body).encode(), headers, method=method)):
            pass


async def _add_history(records: Path) -> None:
    """An hour of minutes before the demo began, so that charts show more than its first seconds."""
    chance = random.Random(7)
    now_ms = int(time.time() * 1000)
    first_ms = now_ms - now_ms % MINUTE_MS - 60 * MINUTE_MS
    usual = {
        "demo-mail": (150, 7, 6),
        "demo-images": (225, 7, 8),
        "demo-orders": (60, 1, 8),
        "demo-reports": (14, 2, 9),
    }
    rows = []
    for queue, (jobs, waits, runs) in usual.items():
        for number in range(60):
            done = max(1, round(jobs * (1 + 0.35 * chance.uniform(-1, 1)) * (0.7 + 0.3 * ((number % 23) / 23))))
            failed = round(done * 0.05 * chance.random()) if queue != "demo-images" else 0
            rows.append(
                {
                    "queue": queue,
                    "tenant": "",
                    "minute_ms": first_ms + number * MINUTE_MS,
                    "added": round(done * chance.uniform(0.95, 1.1)) + failed,
                    "started": done + failed,
                    "completed": done,
                    "failed": failed,
                    "retried": failed,
                    "wait": _spread(done, waits, chance),
                    "processing": _spread(done, runs, chance),
                }
            )
    database = database_at(f"sqlite:{records}", SYSTEM_CLOCK)
    async with database.writing() as connection:
        await connection.execute(minute.insert(), rows)
    await database.close()


def _spread(jobs: int, middle: int, chance: random.Random) -> list[int]:
    """A histogram whose most jobs are at one bound, and some above."""
    counts = [0] * (len(BOUNDS_MS) + 1)
    for _ in range(jobs):
        counts[min(len(counts) - 1, max(0, round(chance.gauss(middle, 0.8))))] += 1
    return counts


def _fonts(folder: Path) -> Path:
    """The interface's fonts are those of the system; where that has only DejaVu, pictures look like nobody's screen."""
    file = folder / "fonts.conf"
    aliases = "".join(_ALIAS.format(name=name) for name in ("system-ui", "ui-sans-serif", "sans-serif"))
    file.write_text(_FONTS.format(aliases=aliases))
    return file


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
