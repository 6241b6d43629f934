"""Plain functions have threads of their own: one that hangs keeps nobody else from a thread."""

import asyncio
import threading

import pytest

from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.threads import MOST, Threads
from bullpen.agents.tools.tool import ToolContext, tool
from bullpen.errors import ToolTimeout

_PATIENCE_S = 60
_CONTEXT = ToolContext(task_id="r1", key="r1/1")


async def test_tools_that_hang_are_left_behind_and_others_have_their_threads() -> None:
    over = threading.Event()

    @tool(policy=Policy.READ_ONLY, timeout=0.05)
    def hang() -> None:
        """Wait for what does not come."""
        over.wait(_PATIENCE_S)

    @tool(policy=Policy.READ_ONLY)
    def look() -> str:
        """Look."""
        return threading.current_thread().name

    try:
        # More than the usual threads of a process, and fewer than those of tools.
        hanging = [hang.call(_CONTEXT, {}) for _ in range(MOST - 1)]
        found = await asyncio.gather(*hanging, return_exceptions=True)
        assert {type(one) for one in found} == {ToolTimeout}
        assert (await look.call(_CONTEXT, {})).startswith("tool-")
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.gather(*(asyncio.to_thread(threading.get_ident) for _ in range(9)))
    finally:
        over.set()


async def test_only_so_many_work_at_once_and_none_keeps_the_process() -> None:
    threads, pairs, used = Threads("some", 2), threading.Barrier(2), set[threading.Thread]()

    def meet() -> None:
        used.add(threading.current_thread())
        pairs.wait(_PATIENCE_S)

    await asyncio.gather(*(threads.run(meet) for _ in range(6)))
    assert {thread.name for thread in used} == {"some-1", "some-2"}
    assert all(thread.daemon for thread in used)


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    threads, over, begun = Threads("some", 1), threading.Event(), list[str]()
    first = asyncio.ensure_future(threads.run(lambda: over.wait(_PATIENCE_S)))
    second = asyncio.ensure_future(threads.run(lambda: begun.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    over.set()
    assert await first
    await threads.run(lambda: begun.append("third"))
    assert begun == ["third"]
