"""Code and commands in the run's sandbox.

A sandbox ends with its worker, and its files with it; whoever resumes the run gives it a fresh one with the files of
its last checkpoint. So what had no way out of the sandbox is done again after a crash: nothing of it is left. With
network it may have done something out there, and a person is asked.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from bullpen.agents.sandbox.base import Ending, Level, Sandbox
from bullpen.agents.sandbox.limits import check_seconds
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.shortening import Shortened, shortened
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.errors import ToolError

Language = Literal["python", "javascript"]

_PROGRAMS: dict[Language, str] = {"python": "python3", "javascript": "node"}
_WAIT_FOR_SANDBOX_S = 60.0
"""Beyond the time of the work itself: what the sandbox ends is told with its output, what the tool ends is not."""
_SHOWN = 8_000
_NOT_STARTED = 127

Seconds = Annotated[float, Meta(gt=0, description="How long it may take, in seconds.")]


def code_execute(*, longest_s: float = 300.0, network: bool = False, shown: int = _SHOWN) -> Tool:
    """A tool that runs Python, and JavaScript where the sandbox has Node.

    `network` says that the run's sandbox may have it. Of each stream the model sees `shown` characters.
    """
    check_seconds("longest_s", longest_s)

    @tool(policy=_policy(network), timeout=longest_s + _WAIT_FOR_SANDBOX_S, isolation=Level.NAMESPACE)
    async def code_execute(
        ctx: ToolContext,
        code: Annotated[str, Meta(min_length=1, max_length=500_000, description="A whole program.")],
        language: Language = "python",
        timeout_s: Seconds = longest_s,
    ) -> dict[str, Any]:
        """Run a program in the sandbox, in its workspace, and see what it prints. Print what you want to know.

        Files stay between calls, variables do not.
        """
        sandbox = await _sandbox(ctx, network=network)
        argv = [_PROGRAMS[language], "-"]
        return await _run(ctx, sandbox, argv, code.encode(), min(timeout_s, longest_s), shown)

    return code_execute


def shell_execute(*, longest_s: float = 300.0, network: bool = False, shown: int = _SHOWN) -> Tool:
    """A tool that runs a command line by `sh`. The options are those of `code_execute`."""
    check_seconds("longest_s", longest_s)

    @tool(policy=_policy(network), timeout=longest_s + _WAIT_FOR_SANDBOX_S, isolation=Level.NAMESPACE)
    async def shell_execute(
        ctx: ToolContext,
        command: Annotated[str, Meta(min_length=1, max_length=100_000, description="As a shell takes it.")],
        timeout_s: Seconds = longest_s,
    ) -> dict[str, Any]:
        """Run a command line with sh in the sandbox, in its workspace. What it starts ends with it."""
        if "\0" in command:
            raise ToolError("command: has a NUL in it")
        sandbox = await _sandbox(ctx, network=network)
        return await _run(ctx, sandbox, ["sh", "-c", command], b"", min(timeout_s, longest_s), shown)

    return shell_execute


def _policy(network: bool) -> Policy:
    return Policy.ONCE if network else Policy.READ_ONLY


async def _sandbox(ctx: ToolContext, *, network: bool) -> Sandbox:
    sandbox = await ctx.needs_sandbox()
    if sandbox.spec.limits.network and not network:
        # Its policy would let a crash do twice what must be done once.
        raise ToolError("this sandbox has network, for which the tool was not made: make it with network=True")
    return sandbox


async def _run(
    ctx: ToolContext, sandbox: Sandbox, argv: list[str], stdin: bytes, seconds: float, shown: int
) -> dict[str, Any]:
    def tell(_: str, line: bytes) -> None:
        ctx.tell(line.decode(errors="replace"))

    outcome = await sandbox.run(argv, stdin=stdin, timeout=seconds, on_line=tell)
    if outcome.code == _NOT_STARTED and not outcome.seconds:
        raise ToolError(f"there is no {argv[0]} in this sandbox")
    stdout = await shortened(ctx, "stdout.txt", outcome.stdout, most=shown, cut_before=outcome.stdout_cut)
    stderr = await shortened(ctx, "stderr.txt", outcome.stderr, most=shown, cut_before=outcome.stderr_cut)
    told = {"ended": _why(outcome.ended, seconds), "exit_code": outcome.code, "seconds": round(outcome.seconds, 3)}
    return {**told, **_as_words("stdout", stdout), **_as_words("stderr", stderr)}


def _why(ended: Ending, seconds: float) -> str:
    return f"timeout: it took longer than {seconds:g} s" if ended is Ending.TIMEOUT else str(ended)


def _as_words(name: str, what: Shortened) -> dict[str, Any]:
    return {name: what.text, **({f"{name}_note": what.note} if what.note else {})}
