"""The agent of the demo comes to its end, and what it says that it made is there."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from bullpen import SqliteStore
from bullpen.agents.equipping import equipped
from bullpen.demo.analyst import Analyst
from bullpen.demo.shop import Shop
from tests.agents.runs.conftest import working


@pytest.mark.skipif(shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed")
async def test_the_demos_analyst_keeps_its_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BULLPEN_BLOBS", str(tmp_path / "blobs"))
    monkeypatch.setenv("BULLPEN_SANDBOX_DIR", str(tmp_path / "sandboxes"))
    shop = Shop(SqliteStore(tmp_path / "demo.db"))
    agents = Analyst(shop, f"sqlite:{tmp_path / 'records.db'}").agents
    async with shop.pen, equipped(agents), working(agents), asyncio.timeout(90):
        await agents.deposit("acme", 100)
        tools = ["file_write", "code_execute", "generate_image"]
        sent = await agents.submit("Which sells best?", tenant="acme", tools=tools)
        result = await agents.result(sent.run_id)
    assert (result.status, result.error, result.tool_calls_made) == ("completed", None, 3)
    made = {one.name for one in result.artifacts}
    assert made == {"sales.csv", "sales.png"}
    assert all(f"`{name}`" in result.output for name in made)
