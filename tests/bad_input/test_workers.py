"""Handlers and options of workers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bullpen import BadHandler, BadOption, Context, Queue, SqliteStore, Worker, WorkerOptions, in_process
from tests.bad_input.refusing import AGES, NAN, Anything, check_error, refused, short


async def _coroutine(ctx: Context) -> None: ...


class _Holder:
    def method(self, ctx: Context) -> None: ...


def _closure() -> Callable[[Context], None]:
    return lambda ctx: None


@pytest.mark.parametrize(
    "handlers, word", [({}, "at least one queue"), ({"mail": 5}, "mail"), ({"mail": None}, "None")]
)
async def test_a_handler_that_is_none(queue: Queue, store: SqliteStore, handlers: Anything, word: str) -> None:
    async with refused(store, BadHandler, "bad-handler", word):
        Worker(store, handlers)


async def test_a_handler_by_name_that_is_none(queue: Queue, store: SqliteStore) -> None:
    handlers: Anything = {"mail": {"send": "send"}}
    async with refused(store, BadHandler, "bad-handler", "mail/send is not callable: 'send'"):
        Worker(store, handlers)


@pytest.mark.parametrize(
    "function, word",
    [
        (lambda ctx: None, "<lambda>"),
        (_closure(), "<locals>"),
        (_coroutine, "_coroutine"),
        (_Holder().method, "define it at module level"),
        (partial(print, "a"), "partial"),
        (5, "5"),
        (None, "None"),
    ],
    ids=["lambda", "closure", "coroutine", "method", "partial", "number", "none"],
)
def test_a_handler_that_another_process_could_not_find(function: Anything, word: str) -> None:
    """Told when the worker is made, not when the first job fails."""
    with pytest.raises(BadHandler) as caught:
        in_process(function)
    check_error(caught.value, BadHandler, "bad-handler", word)


@pytest.mark.parametrize(
    "option, value",
    [
        *[("concurrency", value) for value in (0, -1, 1.5, "5", True, ["mail"], {"mail": 0}, {"mail": "5"})],
        *[("lease", value) for value in (0, -1, NAN, AGES, "30", None, True)],
        *[("timeout", value) for value in (0, -1, NAN, "30")],
        *[("timeout_grace", value) for value in (0, "5")],
        *[("grace", value) for value in (-1, NAN, "5")],
        *[("max_stalled", value) for value in (-1, 1.5, "2", None, True)],
        *[("max_jobs", value) for value in (0, -1, 1.5, "5", True)],
        *[("max_memory_mb", value) for value in (0, -1, 1.5, "5", True)],
        *[("unhandled_delay", value) for value in (0, "5")],
        *[("block_warning", value) for value in (0, "5")],
    ],
    ids=short,
)
def test_a_bad_worker_option(option: str, value: Any) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(BadOption) as caught:
        WorkerOptions(**options)
    check_error(caught.value, BadOption, "bad-option", option)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "", " ", "1e3"])
async def test_a_bad_concurrency_in_the_environment(
    queue: Queue, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("BULLPEN_CONCURRENCY_WEB_MAIL", value)
    async with refused(store, BadOption, "bad-option", "BULLPEN_CONCURRENCY_WEB_MAIL", repr(value)):
        Worker(store, {"web-mail": print})


def test_a_good_concurrency_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_CONCURRENCY_WEB_MAIL", " 12 ")
    assert WorkerOptions().slots("web.mail") == 12
    assert WorkerOptions(concurrency={"web.mail": 3}).slots("web.mail") == 3
    assert WorkerOptions().slots("mail") == 5
