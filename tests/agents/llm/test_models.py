"""The table of models, and money: exact, never a float, and never more than was said."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen import BadOption, ModelUnknown
from bullpen.agents.llm.models import MODELS, ModelTable, built_in, models_from, table_in, table_of
from bullpen.agents.llm.prices import MICRO, as_credits, micro, most_input_tokens
from bullpen.agents.llm.words import (
    Conversation,
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    assistant,
    results,
    system,
    to_json,
    user,
)
from tests.agents.llm.asking import WEATHER, ask

TABLE = built_in()


def _table(**model: Any) -> ModelTable:
    usual = {"provider": "p", "context_window": 1_000, "max_output": 100, "input": 1, "output": 2}
    return table_of({"version": "1", "models": {"m": {**usual, **model}}})


def test_a_price_by_hand() -> None:
    """Read 800 at 15 micro-credits and 200 from the cache at 7.5; written 10 at 60."""
    usage = Usage(input_tokens=1_000, output_tokens=10, cached_input_tokens=200, reasoning_tokens=4)
    assert TABLE.price("gpt-4o-mini", usage) == 12_000 + 1_500 + 600


def test_a_dollar_is_a_hundred_credits() -> None:
    million = Usage(input_tokens=1_000_000)
    assert TABLE.price("gpt-4o", million) == micro(250) == 250 * MICRO
    assert TABLE.price("claude-sonnet-4-5", Usage(output_tokens=1_000_000)) == micro(1_500)
    assert TABLE.price("claude-sonnet-4-5", Usage(1_000_000, 0, 0, 1_000_000)) == micro(375)


def test_what_is_left_of_a_micro_credit_is_rounded_up_once() -> None:
    table = _table(input=Decimal("0.003"), output=Decimal("0.003"))
    assert table.price("m", Usage(1, 1)) == 1  # 0.3 + 0.3
    assert table.price("m", Usage(2, 2)) == 2  # 0.6 + 0.6
    assert table.price("m", Usage()) == 0


def test_a_server_that_counts_more_in_the_cache_than_was_read_gains_nothing() -> None:
    assert TABLE.price("gpt-4o", Usage(10, 0, 99, 99)) == TABLE.price("gpt-4o", Usage(10, 0, 10, 0))


_COUNTS = st.integers(0, 10**9)


@given(_COUNTS, _COUNTS, _COUNTS, _COUNTS, st.sampled_from(sorted(TABLE.models)))
def test_a_price_is_exact_to_the_last_token(read: int, written: int, cached: int, kept: int, name: str) -> None:
    """Compared with fractions; adding two calls never gives less than the sum of both before rounding."""
    model = TABLE.model(name)
    usage = Usage(read + cached + kept, written, cached, kept)
    exact = 100 * (
        read * Fraction(model.input)
        + cached * Fraction(model.input if model.cached_input is None else model.cached_input)
        + kept * Fraction(model.input if model.cache_write is None else model.cache_write)
        + written * Fraction(model.output)
    )
    price = TABLE.price(name, usage)
    assert type(price) is int
    assert exact <= price < exact + 1
    most = model.most(read + cached + kept, written, TABLE.credits_per_dollar)
    assert price <= most


_TEXTS = st.text(max_size=50)
_MESSAGES = st.lists(
    st.one_of(
        st.builds(user, _TEXTS),
        st.builds(system, _TEXTS),
        st.builds(lambda text, name: assistant(text, ToolCall("i", name, text)), _TEXTS, _TEXTS),
        st.builds(lambda text: results(ToolResult("i", text)), _TEXTS),
    ),
    max_size=5,
)


@given(_MESSAGES, st.lists(st.builds(ToolSpec, _TEXTS, _TEXTS, st.just({"type": "object"})), max_size=3))
def test_no_tokenizer_makes_more_tokens_than_we_reserve(messages: list[Any], tools: list[ToolSpec]) -> None:
    """The worst there can be: one token for each byte of each text, and sixteen marks around each message."""
    bytes_of_texts = sum(
        len(text.encode(errors="surrogatepass"))
        for message in messages
        for text in (
            message.text,
            *(part for call in message.calls for part in (call.name, call.arguments)),
            *(result.text for result in message.results),
        )
    )
    bytes_of_tools = sum(len((tool.name + tool.description).encode(errors="surrogatepass")) for tool in tools)
    worst = bytes_of_texts + bytes_of_tools + 16 * len(messages)
    assert most_input_tokens(ask(messages=tuple(messages), tools=tuple(tools))) >= worst


@given(st.lists(st.one_of(st.builds(user, _TEXTS), st.builds(assistant, _TEXTS)), max_size=8), st.integers(0, 8))
def test_a_conversation_that_grows_is_measured_as_a_whole_one(messages: list[Message], known: int) -> None:
    grown = Conversation(messages[:known])
    for one in messages[known:]:
        grown = grown.then(one)
    assert grown == tuple(messages)
    assert most_input_tokens(ask(messages=grown)) == most_input_tokens(ask(messages=tuple(messages)))


def test_there_is_room_for_the_marks_around_messages_and_tools() -> None:
    """Beyond the bytes of their own JSON."""
    one, two = ask(messages=(user(""),)), ask(messages=(user(""), user("")))
    bytes_of_one = len(to_json(user("")))
    assert most_input_tokens(two) - most_input_tokens(one) == bytes_of_one + len(",") + 16
    tools = ask(messages=(user(""),), tools=(WEATHER,))
    assert most_input_tokens(tools) - most_input_tokens(one) == len(to_json(WEATHER)) + 1_024 + 64


def test_the_most_a_call_can_cost() -> None:
    """No more is read than fits, at the dearest price of reading; no more is written than was asked for."""
    long = ask("x" * 5_000_000, model="claude-haiku-4-5", max_tokens=10)
    assert TABLE.most(long) == 200_000 * 125 + 10 * 500
    short = ask("x", model="claude-haiku-4-5", max_tokens=10**9)
    assert TABLE.most(short) == most_input_tokens(short) * 125 + 64_000 * 500
    tools = ask("x", model="scripted", tools=(WEATHER,))
    assert TABLE.most(tools) > TABLE.most(ask("x", model="scripted"))


def test_the_most_is_that_of_the_dearest_model_of_the_order() -> None:
    dear = {"provider": "q", "context_window": 1_000, "max_output": 50, "input": 30, "output": 60}
    table = table_of({"version": "2", "models": {"dear": dear}}, over=_table())
    asked = ask("x", model="m")
    assert [model.name for model in table.order("m")] == ["m"]
    falling_back = {**_plain(table, "m"), "fallbacks": ["dear", "dear", "m"]}
    both = table_of({"version": "3", "models": {"m": falling_back}}, over=table)
    assert [model.name for model in both.order("m")] == ["m", "dear"]
    assert both.most(asked) == both.most(ask("x", model="dear")) > table.most(asked)


def _plain(table: ModelTable, name: str) -> dict[str, Any]:
    model = table.model(name)
    fields = ("provider", "context_window", "max_output", "input", "output")
    return {field: getattr(model, field) for field in fields}


def test_a_file_is_laid_over_the_built_in_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "models.toml"
    path.write_text(
        'version = "mine-1"\ncredits_per_dollar = 1000\n'
        '[models."llama3.2"]\nprovider = "ollama"\ncontext_window = 8192\nmax_output = 2048\ninput = 0\noutput = 0\n'
        '[models.gpt-4o]\nprovider = "openai"\ncontext_window = 128000\nmax_output = 16384\ninput = 0.1\noutput = 0.3\n'
    )
    monkeypatch.setenv(MODELS, str(path))
    table = models_from()
    assert table.version == "mine-1"
    assert table.price("llama3.2", Usage(1_000, 1_000)) == 0
    assert table.price("gpt-4o", Usage(1, 1)) == 400, "a tenth of a dollar is a tenth, as no float is"
    assert table.model("gpt-4o-mini") == TABLE.model("gpt-4o-mini")
    monkeypatch.delenv(MODELS)
    assert models_from() == TABLE


def test_tools_have_prices_in_the_table(tmp_path: Path) -> None:
    """In dollars for a call; the rest of a micro-credit is rounded up."""
    below = table_in('version = "1"\n[tools]\nweb_search = 1\ncode_execute = 2')
    table = table_in('version = "2"\ncredits_per_dollar = 50\n[tools]\nweb_search = 0.005\nfree = 0', over=below)
    assert (table.version, table.tool_price("web_search"), table.tool_price("free")) == ("2", MICRO // 4, 0)
    assert (table.tool_price("code_execute"), table.tool_price("absent")) == (100 * MICRO, None)
    assert table_in('version = "1"\n[tools]\nx = 0.0000000001').tool_price("x") == 1


_LINE = '[models.m]\nprovider = "p"\ncontext_window = 9\nmax_output = 9\n'


@pytest.mark.parametrize(
    "text,said",
    [
        ("version = ", "mine.toml"),
        ("models = {}", "version"),
        ('version = "1"\ncredits_per_dollar = 0', "credits_per_dollar"),
        ('version = "1"\n[models.m]\nprovider = "p"', "models"),
        (f'version = "1"\n{_LINE}input = -1\noutput = 1', "input: a price"),
        ('version = "1"\n[tools]\nx = -1', "tools.x"),
        ('version = "1"\n[tools]\nx = nan', "tools.x"),
        (f'version = "1"\n{_LINE}input = nan\noutput = 1', "input: a price"),
        (f'version = "1"\n{_LINE}input = "dear"\noutput = 1', "input"),
        (f'version = "1"\n{_LINE}input = 1\noutput = 1\ncolour = "red"', "colour"),
        (f'version = "1"\n{_LINE}input = 1\noutput = 1\nfallbacks = ["absent"]', "models.m.fallbacks"),
        (f'version = "1"\n{_LINE}input = 1\noutput = 1'.replace("window = 9", "window = 0"), "context_window"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(text: str, said: str) -> None:
    with pytest.raises(BadOption) as caught:
        table_in(text, what="mine.toml")
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"BULLPEN_MODELS: .*absent\.toml"):
        models_from(tmp_path / "absent.toml")


def test_an_unknown_model_is_an_error_of_whoever_asked() -> None:
    with pytest.raises(ModelUnknown, match="gpt-4o") as caught:
        TABLE.most(ask(model="gpt-4oo"))
    assert (caught.value.agent_code, caught.value.retryable) == ("E001", False)


def test_a_request_is_fitted_to_its_model() -> None:
    sent = TABLE.model("claude-3-opus").fitted(ask(model="claude-3-opus", max_tokens=9_999))
    assert (sent.model, sent.max_tokens) == ("claude-3-opus-20240229", 4_096)


@given(st.integers(0, 10**18))
def test_credits_and_micro_credits(amount: int) -> None:
    assert micro(as_credits(amount)) == amount


def test_less_than_a_micro_credit_is_no_amount() -> None:
    assert micro("1.5") == 1_500_000
    with pytest.raises(BadOption, match="micro-credits"):
        micro("0.0000001")
    assert str(as_credits(250 * MICRO)) == "250"
