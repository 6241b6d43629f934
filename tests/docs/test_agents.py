"""The page about agents has each field of a result and each code of errors, as the code has them."""

import re
from collections.abc import Iterator

from bullpen.agents.loop.words import Stop
from bullpen.agents.sandbox.asking import SandboxAsked
from bullpen.agents.words import Artifact, TaskResult, problem_at, problem_of
from bullpen.errors import AgentError, BadOption
from bullpen.server.problems import UNKNOWN_CALLER
from tests.docs.pages import REFERENCE, rows, section

_PAGE = REFERENCE / "agents.md"
_QUOTED = re.compile(r'"([^"]+)"')


def test_every_field_of_a_result_has_its_line() -> None:
    for kind in (TaskResult, Artifact):
        told = [row[0] for row in rows(section(_PAGE, f"## {kind.__name__}"))]
        assert told == list(kind.__struct_fields__)


def test_every_field_of_a_sandbox_has_its_line() -> None:
    assert [row[0] for row in rows(section(_PAGE, "## Sandbox"))] == list(SandboxAsked.__struct_fields__)


def _known() -> Iterator[tuple[str, bool, str | None]]:
    """Each code, whether it may be tried again, and its message; None where that is the error's own."""
    waiting: list[type[AgentError]] = [AgentError]
    while waiting:
        kind = waiting.pop()
        yield kind.agent_code, kind.retryable, kind.safe_message
        waiting += kind.__subclasses__()
    wrong = problem_of(BadOption("prompt: a text"))
    yield wrong.code, wrong.retryable, None
    yield "E002", False, UNKNOWN_CALLER
    for stop in Stop:
        if (problem := problem_at(stop)) is not None:
            yield problem.code, problem.retryable, problem.user_facing_message


def test_every_code_has_its_line_with_what_users_are_told() -> None:
    known = list(_known())
    told = {row[0]: row[2:] for row in rows(section(_PAGE, "## Codes of errors"))}
    assert list(told) == sorted({code for code, _, _ in known})
    assert list(told) == [*(f"E{n:03}" for n in range(1, 15)), "E999"]
    for code, (again, messages) in told.items():
        answers = {retryable for one, retryable, _ in known if one == code}
        assert again == ("depends" if len(answers) > 1 else "yes" if answers.pop() else "no"), code
        assert set(_QUOTED.findall(messages)) == {text for one, _, text in known if one == code and text}, code
