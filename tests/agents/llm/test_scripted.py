"""The scripted provider: the same interface, answers that can be foreseen, prices that can be checked by hand."""

import contextlib
from pathlib import Path

import pytest

from bullpen import AnswerBroken, BadOption, CallRefused, ModelLimited
from bullpen.agents.llm.deltas import CallDelta, End, Gathering, Started, TextDelta, UsageDelta
from bullpen.agents.llm.models import built_in
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.scripted import CallTurn, Script, ScriptedProvider, Turn, script_from, script_in
from bullpen.agents.llm.words import Request, StopReason, ToolResult, Usage, results, user
from tests.agents.llm.asking import WEATHER, ask, deltas_of

SCRIPT = """
turns:
  - text: Let me look.
    calls:
      - name: weather
        arguments: {place: Bern}
      - name: weather
        arguments: "not JSON"
    chunk: 6
    delay: 0.5
  - text: It is sunny.
    usage: {input_tokens: 100, output_tokens: 3}
  - when: {role: user, contains: joke}
    text: No.
"""


async def test_a_conversation_by_its_script() -> None:
    """Each turn follows from the conversation alone, so another process gives the same answers."""
    request = ask("Weather?", model="scripted", tools=(WEATHER,))
    reply = await complete(ScriptedProvider(script_in(SCRIPT), sleep=_no_sleep), request)
    assert (reply.text, reply.stop, reply.provider) == ("Let me look.", StopReason.TOOL_CALLS, "scripted")
    assert [call.arguments for call in reply.calls] == ['{"place":"Bern"}', "not JSON"]
    answers = [ToolResult(call.id, "sunny") for call in reply.calls]
    told = ask(messages=(*request.messages, reply.message(), results(*answers)), model="scripted")
    again = await complete(ScriptedProvider(script_in(SCRIPT)), told)
    assert (again.text, again.stop) == ("It is sunny.", StopReason.ANSWER)
    assert built_in().price("scripted", again.usage or Usage()) == 100 * 100 + 3 * 400


async def test_pieces_and_pauses_are_as_the_script_says() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    provider = ScriptedProvider(script_in(SCRIPT), sleep=sleep)
    deltas = await deltas_of(provider, ask(tools=(WEATHER,)))
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert texts == ["Let me", " look."]
    assert isinstance(deltas[0], Started)
    assert [type(delta) for delta in deltas[-2:]] == [UsageDelta, End]
    assert sum(isinstance(delta, CallDelta) for delta in deltas) == 2 + 3 + 2
    assert pauses == [0.5] * (len(deltas) - 1)


async def test_a_turn_that_fits_the_last_message_comes_before_those_by_number() -> None:
    assert (await complete(ScriptedProvider(script_in(SCRIPT)), ask("Tell a joke"))).text == "No."


async def test_a_script_that_is_over_says_so() -> None:
    with pytest.raises(CallRefused, match="no answer number 1"):
        await complete(ScriptedProvider(Script(())), ask())


async def test_a_fault_for_some_tries_and_then_the_turn() -> None:
    script = script_in("turns: [{text: hi, error: {code: model-limited, retry_after: 2, times: 2}}]")
    provider = ScriptedProvider(script)
    for _ in range(2):
        with pytest.raises(ModelLimited) as caught:
            await complete(provider, ask())
        assert caught.value.retry_after == 2
    assert (await complete(provider, ask())).text == "hi"


@pytest.mark.parametrize("after,came", [(0, ""), (3, "Hel"), (5, "Hello"), (99, "Hello")])
async def test_a_fault_in_the_midst_of_an_answer(after: int, came: str) -> None:
    provider = ScriptedProvider(script_in(f"turns: [{{text: Hello, chunk: 2, error: {{after: {after}}}}}]"))
    gathering = Gathering()
    with pytest.raises(AnswerBroken) as caught:
        await complete(provider, ask(), gathering.take)
    assert gathering.progress().startswith(f"{len(came)} characters")
    assert gathering.end is None
    assert caught.value.may_cost


async def test_a_function_can_be_a_script() -> None:
    async def answer(request: Request) -> Turn | str:
        if request.messages[-1].text == "tool":
            return Turn(calls=(CallTurn("weather", id="mine"),))
        return request.messages[-1].text.upper()

    provider = ScriptedProvider(answer)
    assert (await complete(provider, ask("hello"))).text == "HELLO"
    assert (await complete(provider, ask("tool"))).calls[0].id == "mine"
    assert (await complete(ScriptedProvider(lambda _: "plain"), ask())).text == "plain"


async def test_no_more_is_said_than_was_asked_for() -> None:
    """What a call may cost is bounded by `max_tokens`, so a script keeps to it; unless it tells a usage itself."""
    table = built_in()
    script = Script((Turn(text="ü" * 1_000, calls=(CallTurn("weather"),)),))
    request = ask(model="scripted", max_tokens=10)
    reply = await complete(ScriptedProvider(script), request)
    assert (len(reply.text.encode()), reply.stop, reply.calls) == (40, StopReason.MAX_TOKENS, ())
    assert reply.usage is not None
    assert reply.usage.output_tokens == 10
    assert table.price("scripted", reply.usage) <= table.most(request)


async def test_a_reader_may_leave() -> None:
    async with contextlib.aclosing(ScriptedProvider(script_in(SCRIPT), sleep=_no_sleep).stream(ask())) as deltas:
        assert await anext(deltas) == Started("gpt", provider="scripted")


@pytest.mark.parametrize(
    "text,said",
    [
        ("turns: [", "script"),
        ("turns: 3", "turns"),
        ("turn: []", "turn"),
        ("turns: [{txt: hi}]", "txt"),
        ("turns: [{error: {code: bad-luck}}]", "code: one of"),
        ("turns: [{when: {matches: '('}}]", "matches"),
        ("turns: [{calls: [{arguments: {}}]}]", "name"),
    ],
)
def test_what_is_wrong_in_a_script_is_named(text: str, said: str) -> None:
    with pytest.raises(BadOption) as caught:
        script_in(text)
    assert said in str(caught.value)


def test_a_script_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(SCRIPT)
    assert len(script_from(path).turns) == 3
    with pytest.raises(BadOption, match=r"absent\.yaml"):
        script_from(tmp_path / "absent.yaml")


async def test_a_condition_can_be_a_pattern_of_a_tool_s_result() -> None:
    script = script_in("turns: [{when: {role: tool, matches: 'rain|snow'}, text: Take a coat.}, {text: Enjoy.}]")
    first = await complete(ScriptedProvider(lambda _: Turn(calls=(CallTurn("weather"),))), ask())

    def told(weather: str) -> Request:
        return ask(messages=(user("?"), first.message(), results(ToolResult(first.calls[0].id, weather))))

    assert (await complete(ScriptedProvider(script), told("some snow"))).text == "Take a coat."
    with pytest.raises(CallRefused, match="no answer number 2"):
        await complete(ScriptedProvider(script), told("sun"))


async def _no_sleep(_: float) -> None:
    return
