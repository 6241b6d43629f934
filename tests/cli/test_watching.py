"""`dev` and `top`: views that go on until they are ended, at a terminal and without one."""

import asyncio
import json
import signal

import pytest

from bullpen import JobMissing, Queue, State, Store
from bullpen.settings import STORE
from tests.cli.commands import COLUMNS, Folder
from tests.support.places import FilePlace, only_on_sqlite

_CURSOR_SHOWN, _SCREEN_BACK = "\x1b[?25h", "\x1b[?1049l"


@only_on_sqlite  # the demo has a file of its own, whatever store is asked for
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_dev_without_a_terminal_tells_in_lines_and_ends_when_told(
    folder: Folder, place: FilePlace, number: signal.Signals
) -> None:
    with folder.started("dev") as demo:
        assert demo.stdout is not None
        told = ""
        while "is done" not in told:
            line = demo.stdout.readline()
            assert line, told
            told += line
        demo.send_signal(number)
        rest, errors = demo.communicate(timeout=30)
        assert (demo.returncode, errors) == (0, "")
        assert "\x1b" not in told + rest
        assert rest.endswith("handed back what they ran.\n")
    assert not place.path.exists(), f"{STORE} is someone's own"


@only_on_sqlite
@pytest.mark.parametrize("how", ["q", "interrupt"])
def test_dev_at_a_terminal_shows_a_board_and_leaves_it_tidy(folder: Folder, how: str) -> None:
    with folder.at_terminal("dev") as terminal:
        terminal.until("is done")
        assert "demo-images" in terminal.until("demo-reports")
        if how == "q":
            terminal.press("q")
        else:
            terminal.signal(signal.SIGINT)
        answer = terminal.end()
    assert answer.code == 0
    assert answer.out.rindex(_SCREEN_BACK) > answer.out.rindex("is done")
    assert _CURSOR_SHOWN in answer.out
    assert max(map(len, answer.lines)) <= COLUMNS


@only_on_sqlite
def test_dev_ends_by_itself_and_leaves_its_jobs_to_be_looked_at(folder: Folder) -> None:
    answer = folder.bullpen("dev", "--seconds", 3)
    assert answer.code == 0
    queues = folder.bullpen("--store", ".bullpen/demo.db", "queues", "--json").json
    names = {queue["queue"] for queue in queues}
    assert names >= {"demo-images", "demo-mail", "demo-orders", "demo-reports", "agent-standard"}
    assert sum(queue[state] for queue in queues for state in ("prioritized", "delayed", "completed")) > 0
    assert folder.bullpen("dev", "--seconds", 1).code == 0, "a second time on the same file"


@only_on_sqlite
async def test_dev_on_a_named_store_leaves_the_queues_of_agents_alone(
    folder: Folder, place: FilePlace, store: Store
) -> None:
    for queue in ("agent-standard", "demo-mail"):
        await Queue(store, queue).add("someones", id="theirs")
    answer = await asyncio.to_thread(folder.bullpen, "--store", place.address, "dev", "--seconds", 2)
    assert answer.code == 0, answer.err
    assert (await Queue(store, "agent-standard").job("theirs").record()).state is State.WAITING
    with pytest.raises(JobMissing):  # its own queues begin anew
        await Queue(store, "demo-mail").job("theirs").record()


@only_on_sqlite
def test_dev_whose_reader_leaves_is_no_error(folder: Folder) -> None:
    with folder.started("dev") as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.readline()
        demo.stdout.close()
        assert demo.wait(30) == 0
        assert demo.stderr.read() == ""


@pytest.mark.parametrize("how", ["q", "interrupt", "time"])
def test_top_goes_on_until_ended(shop: Folder, how: str) -> None:
    limit = ["--seconds", "5"] if how == "time" else []
    with shop.at_terminal("top", *limit) as terminal:
        terminal.until("reports")
        terminal.until("No workers.")
        if how == "q":
            terminal.press("q")
        elif how == "interrupt":
            terminal.signal(signal.SIGINT)
        answer = terminal.end()
    assert answer.code == 0
    assert answer.out.endswith(_SCREEN_BACK)
    assert max(map(len, answer.lines)) <= COLUMNS


def test_top_without_a_terminal_looks_once(shop: Folder) -> None:
    answer = shop.bullpen("top")
    assert (answer.code, answer.lines[0].split()[0]) == (0, "queue")
    assert not answer.has_colour


def test_top_for_programs(shop: Folder) -> None:
    """One look, or one after the other for a time; with time, the pace is known."""
    (look,) = shop.bullpen("top", "--json").items
    assert [queue["name"] for queue in look["queues"]] == ["mail", "reports"]
    looks = shop.bullpen("top", "--json", "--seconds", 2).items
    assert len(looks) > 1
    assert looks[-1]["queues"][0]["per_second"] == 0
    assert json.dumps(looks)
