"""`bullpen mcp` as a real process, spoken to by the client of the protocol's own package."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from tests.cli.commands import Folder, environment

_READING = {"list_queues", "list_jobs", "get_job", "job_logs", "dead_letters", "list_workers"}
_WRITING = {"enqueue", "retry_job", "retry_dead_letters", "pause_queue", "resume_queue"}


@contextlib.asynccontextmanager
async def _assistant(folder: Folder, *options: str) -> AsyncIterator[ClientSession]:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "bullpen.cli", "mcp", *options],
        env=environment(BULLPEN_STORE=folder.address),
        cwd=folder.path,
    )
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        answer = await session.initialize()
        assert answer.server_info.name == "bullpen"
        yield session


async def _call(session: ClientSession, tool: str, **arguments: Any) -> Any:
    answer = await session.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert isinstance(answer.content[0], TextContent)
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


async def _refusal(session: ClientSession, tool: str, **arguments: Any) -> str:
    answer = await session.call_tool(tool, arguments)
    assert answer.is_error
    assert isinstance(answer.content[0], TextContent)
    return answer.content[0].text


async def test_an_assistant_looks_at_everything_and_changes_nothing(folder: Folder) -> None:
    added = folder.bullpen("enqueue", "mail", "welcome", '{"secret": "hunter2"}', "--tenant", "acme", "--json").json
    async with _assistant(folder) as session:
        tools = (await session.list_tools()).tools
        assert {tool.name for tool in tools} == _READING
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
        (queue,) = (await _call(session, "list_queues"))["queues"]
        assert (queue["queue"], queue["prioritized"]) == ("mail", 1)
        listed = await _call(session, "list_jobs", queue="mail", state="prioritized", limit=5)
        assert [job["id"] for job in listed["jobs"]] == [added["id"]]
        job = await _call(session, "get_job", queue="mail", id=added["id"])
        assert (job["name"], job["state"], job["tenant"]) == ("welcome", "prioritized", "acme")
        assert "hunter2" not in json.dumps([listed, job])
        assert (await _call(session, "dead_letters"))["groups"] == []
        assert (await _call(session, "list_workers"))["workers"] == []
        assert await _call(session, "job_logs", queue="mail", id=added["id"]) == {"lines": [], "total": 0}
        with pytest.raises(Exception, match="no tool 'pause_queue'"):
            await session.call_tool("pause_queue", {"queue": "mail"})


async def test_what_it_may_change_when_allowed(folder: Folder) -> None:
    async with _assistant(folder, "--allow-writes", "--show-data") as session:
        assert {tool.name for tool in (await session.list_tools()).tools} == _READING | _WRITING
        added = await _call(session, "enqueue", queue="mail", name="welcome", data={"user_id": 1}, id="w-1")
        assert added == {"queue": "mail", "id": "w-1", "outcome": "added"}
        job = await _call(session, "get_job", queue="mail", id="w-1")
        assert job["data"] == {"user_id": 1}
        assert await _call(session, "pause_queue", queue="mail") == {"queue": "mail", "paused": True}
        assert (await _call(session, "list_queues"))["queues"][0]["paused"] is True
        assert await _call(session, "resume_queue", queue="mail") == {"queue": "mail", "paused": False}
        folder.bullpen("cancel", "mail", "w-1")
        (group,) = (await _call(session, "dead_letters", queue="mail"))["groups"]
        assert group["kind"] == "cancelled"
        assert await _call(session, "retry_dead_letters", fingerprint=group["fingerprint"]) == {"retried": 1}
        folder.bullpen("cancel", "mail", "w-1")
        assert await _call(session, "retry_job", queue="mail", id="w-1") == {"retried": 1}


async def test_what_is_wrong_is_told_to_the_assistant(folder: Folder) -> None:
    """It can mend its call: the answer names the argument, or carries the code of the error."""
    folder.bullpen("enqueue", "mail", "welcome")
    async with _assistant(folder) as session:
        assert "[job-missing]" in await _refusal(session, "get_job", queue="mail", id="none")
        assert "id is missing" in await _refusal(session, "get_job", queue="mail")
        assert "state is one of" in await _refusal(session, "list_jobs", queue="mail", state="sleepy")
        assert "limit is from 1 to 200" in await _refusal(session, "dead_letters", limit=1_000)
        assert "limit is a integer" in await _refusal(session, "dead_letters", limit="all")
        assert "no argument 'queues'" in await _refusal(session, "dead_letters", queues="mail")


@pytest.mark.parametrize(
    "line, code",
    [("not json", -32700), ("[]", -32600), ('{"id": 1, "method": "resources/list"}', -32601)],
)
def test_what_is_no_request_gets_the_code_of_the_protocol(folder: Folder, line: str, code: int) -> None:
    folder.bullpen("enqueue", "mail", "welcome")
    answer = folder.bullpen("mcp", given=line + "\n")
    assert json.loads(answer.out)["error"]["code"] == code
