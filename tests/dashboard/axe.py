"""What axe-core finds on a page."""

from typing import Any

from playwright.async_api import Page

from tests.dashboard.stage import ROOT

_AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"


async def serious_findings(page: Page) -> list[str]:
    """Serious and critical ones; the page's context must be open to a script that its own policy forbids."""
    await page.add_script_tag(path=_AXE)
    found: dict[str, Any] = await page.evaluate("axe.run()")
    return [
        f"{one['id']}: {node['html'][:160]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
