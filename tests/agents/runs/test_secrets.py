"""No secret gets into what is told of a run, nor into its problem or its job, in whole or in part."""

import os

import msgspec
import pytest

from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, Fault, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.redacting import Redactor, secrets_of
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext, tool
from bullpen.job.record import JobRef
from bullpen.job.state import FINISHED
from bullpen.records.runs.words import ProgressEvent, ProgressKind
from tests.agents.runs.conftest import TENANT, Answers, Making, working
from tests.worker.waiting import until

_PATIENCE_S = 60
_SECRET = "hunter2-hunter2-hunter2"
_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
_PEM = "\n".join(("-----BEGIN RSA PRIVATE KEY-----", *[_LINE] * 25, "-----END RSA PRIVATE KEY-----"))
_WORDS = "correct horse battery\nstaple of mine"
_BEARER = "Authorization: Bearer abcdefghijklmnopqrstuvwxyz"


async def _events(agents: Agents) -> list[ProgressEvent]:
    sent = await agents.submit("go", tenant=TENANT)
    await agents.result(sent.run_id, timeout=_PATIENCE_S)
    return [event async for event in agents.follow(sent.run_id)]


def _calls(name: str, **arguments: object) -> Answers:
    def answer(request: Request) -> Turn:
        if request.messages[-1].role is Role.TOOL:
            return Turn(text="done", usage=Usage(1, 1))
        return Turn(calls=(CallTurn(name, arguments, id="c1"),), usage=Usage(1, 1))

    return answer


@tool(policy=Policy.READ_ONLY)
async def peek(ctx: ToolContext, note: str) -> str:
    """Read what nobody is to know, and say so line by line."""
    for line in ("it begins", *_PEM.splitlines(), "x" * 490 + os.environ["PEEKED_TOKEN"], "it ends"):
        ctx.tell(line)
    return "x" * 490 + os.environ["PEEKED_TOKEN"]


async def test_what_is_cut_has_no_part_of_a_secret(agents_with: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEEKED_TOKEN", _SECRET)
    note = "y" * 480 + _SECRET
    async with agents_with(_calls("peek", note=note), [peek]) as agents, working(agents):
        events = await _events(agents)
    told = {event.kind: msgspec.json.encode(event.data).decode() for event in events}
    assert "y" * 480 in told[ProgressKind.TOOL_STARTED]
    assert "x" * 490 in told[ProgressKind.TOOL_COMPLETED]
    every = "".join(told.values())
    assert "hunter2" not in every
    assert _LINE not in every


@pytest.mark.parametrize("secret", [_PEM, _WORDS, _BEARER], ids=["key", "words", "bearer"])
async def test_words_that_stream_have_no_part_of_a_secret(
    agents_with: Making, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("PEEKED_TOKEN", _WORDS)

    def says(_: Request) -> Turn:
        return Turn(text=f"before {secret} after", chunk=max(5, len(secret) // 8), delay=0.1, usage=Usage(1, 1))

    async with agents_with(says) as agents, working(agents):
        events = await _events(agents)
    streamed = [event.data["content_delta"] for event in events if event.kind is ProgressKind.LLM_STREAMING]
    assert len(streamed) > 1
    shown = "Authorization: Bearer " if secret is _BEARER else ""
    assert "".join(streamed) == f"before {shown}[redacted] after"


@pytest.mark.parametrize(
    "text",
    [f"a {_PEM} b", f"a {_WORDS} b", f"a {_BEARER} b", "a -----BEGIN PUBLIC KEY----- b"],
    ids=["key", "words", "bearer", "public"],
)
def test_what_is_settled_stays_as_it_is_told(text: str) -> None:
    """Wherever a text is cut, its parts without secrets are the whole without secrets."""
    redactor = Redactor([_WORDS])
    whole = redactor.text(text)
    for cut in range(len(text)):
        settled = redactor.settled(text[:cut])
        assert redactor.text(text[:settled]) + redactor.text(text[settled:]) == whole


def test_what_never_becomes_a_key_is_not_held_back_for_ever() -> None:
    assert Redactor([]).settled("-----BEGIN PRIVATE KEY-----" + " a" * 10_000 + " ") == 20_028


def test_a_key_without_its_end_is_redacted_too() -> None:
    assert Redactor([]).text(f"{_PEM[:600]}… and more").startswith("[redacted]… and more")


def test_a_secret_of_several_lines_is_known_in_json() -> None:
    said = msgspec.json.encode({"stdout": _WORDS}).decode()
    assert Redactor([_WORDS]).text(said) == '{"stdout":"[redacted]"}'


@pytest.mark.parametrize("after", [None, 0], ids=["refused", "tried again"])
async def test_neither_problem_nor_job_has_a_secret(
    agents_with: Making, monkeypatch: pytest.MonkeyPatch, after: int | None
) -> None:
    monkeypatch.setenv("PEEKED_TOKEN", _SECRET)
    code = "model-access" if after is None else "model-error"

    def fails(_: Request) -> Turn:
        return Turn(text="half", error=Fault(code, f"401 for {_SECRET}", after=after or 1))

    async with agents_with(fails) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT, task_type="tool_execution")
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.error is not None
        assert result.error.message.endswith("401 for [redacted]")
        [task] = await agents.tasks(sent.run_id)
        assert task.outcome is not None
        assert b"hunter2" not in task.outcome
        job = await until(lambda: agents.pen.store.job(JobRef(task.queue, task.id)), lambda job: job.state in FINISHED)
        assert "hunter2" not in repr(job)
        runs = (await agents.records()).runs
        assert [run.id for run in (await runs.page(text="401 redacted")).runs] == [sent.run_id]
        assert (await runs.page(text="hunter2")).runs == (), "nor can it be guessed by searching"


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "OPENAI_APIKEY", "GITHUB_TOKEN", "JWT_SECRET", "DB_PASSWORD", "AWS_CREDENTIALS"),
        *("PGPASSWORD", "REDISCLI_AUTH", "SMTP_PASS", "MYSQL_PWD", "GPG_PASSPHRASE", "DB_PASSWD", "SSHPASS_PASS"),
        *("db_password", "token", "Smtp_Pass", "password", "SECRET"),
    ],
)
def test_a_setting_is_a_secret_by_its_name(name: str) -> None:
    assert secrets_of({name: _SECRET}) == [_SECRET]


@pytest.mark.parametrize(
    "name", ["PWD", "OLDPWD", "MONKEY", "COMPASS", "SSH_AUTH_SOCK", "MAX_TOKENS", "AUTHOR", "PASSAGE"]
)
def test_a_setting_is_no_secret_by_a_part_of_a_word(name: str) -> None:
    assert secrets_of({name: "/home/ann/work"}) == []
