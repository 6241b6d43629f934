"""A tool from a typed function: its hints are what a model is told, and what its arguments are checked against.

    @tool(policy=Policy.READ_ONLY)
    async def weather(city: Annotated[str, "Its name, in English."], days: int = 1) -> str:
        \"\"\"The weather in a city for the next days.\"\"\"

A first parameter hinted as `ToolContext` is given the call's own: its key, its task, its sandbox.
"""

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, TypeVar, overload

from bullpen.agents.llm.words import ToolSpec
from bullpen.agents.sandbox.base import Level, Sandbox
from bullpen.agents.sandbox.turns import counted_by
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.signature import read_signature, reader, schema
from bullpen.agents.tools.threads import Threads
from bullpen.errors import AgentError, BadData, BadHandler, ToolError, ToolTimeout
from bullpen.jobtypes.arguments import to_plain

T = TypeVar("T")

_USUAL_S = 60.0
_THREADS = Threads("tool")


class KeepFile(Protocol):
    """Keeps a file as an artifact of the run: the same for the same key and name; its id."""

    async def __call__(
        self, key: str, name: str, data: bytes, *, mime: str, metadata: Mapping[str, Any] | None = None
    ) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """One call of a tool."""

    task_id: str
    key: str
    """The same whenever this very call is made again, and no other's."""
    tenant: str | None = None
    sandbox: Callable[[], Awaitable[Sandbox]] | None = None
    """Lends the run's sandbox, made when it is first asked for."""
    files: KeepFile | None = None
    """Keeps what a tool made."""
    progress: Callable[[str], None] | None = None
    """Takes what a tool tells of its work."""

    def tell(self, message: str) -> None:
        """Say how far the call is: the run's log has it a moment later, as `tool_progress`."""
        if self.progress is not None:
            self.progress(message)

    async def needs_sandbox(self) -> Sandbox:
        """The run's sandbox; ToolError where this run has none."""
        if self.sandbox is None:
            raise ToolError("this run has no sandbox")
        return await self.sandbox()

    async def keep_file(self, name: str, data: bytes, *, mime: str, metadata: Mapping[str, Any] | None = None) -> str:
        """Keep a file that this call made as an artifact of the run; its id. ToolError where files are not kept."""
        if self.files is None:
            raise ToolError("this run keeps no files")
        return await self.files(self.key, name, data, mime=mime, metadata=metadata)


Reconcile = Callable[[ToolContext, Mapping[str, Any]], Awaitable[Any]]
"""Finds out what became of a call: its result, or NOT_MADE."""


class _NotMade:
    def __repr__(self) -> str:
        return "NOT_MADE"


NOT_MADE = _NotMade()
"""What a tool's `reconcile` answers if the call had no effect, so that it may be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a model may ask for."""

    name: str
    description: str
    parameters: dict[str, Any]
    """A JSON schema of its arguments."""
    policy: Policy
    timeout_s: float
    isolation: Level
    """The weakest walls behind which its work may be done."""
    price: int
    """Of a call, in micro-credits, beside what a model costs."""
    price_version: str = ""
    """Of the table that the price is of; empty for the tool's own."""
    reconcile: Reconcile | None
    _function: Callable[..., Any] = field(repr=False)
    _read: Callable[[Any], dict[str, Any]] = field(repr=False)
    """The arguments as the function takes them; ValueError says what does not fit."""
    _takes_context: bool

    @property
    def memo(self) -> str:
        """What bookings of its calls say."""
        return f"{self.name} at prices {self.price_version}" if self.price_version else self.name

    def spec(self) -> ToolSpec:
        """As a model is told of it."""
        return ToolSpec(self.name, self.description, self.parameters)

    def check(self, arguments: Any) -> dict[str, Any]:
        """The arguments as the function takes them; BadData, which names the field, is told to the model."""
        try:
            return self._read(arguments)
        except ValueError as error:
            raise BadData(f"arguments: of {self.name!r}: {error}") from None

    async def call(self, context: ToolContext, arguments: Mapping[str, Any]) -> Any:
        """The result as JSON knows it. ToolTimeout, ToolError with the function's own error, or BadData.

        Its time rests while it waits for its turn at the run's sandbox.
        """
        values = self.check(dict(arguments))
        before = (context,) if self._takes_context else ()
        limit = asyncio.timeout(self.timeout_s)
        try:
            async with limit:
                with counted_by(limit):
                    result = await self._perform(before, values)
        except AgentError:
            raise  # it says itself what it is, also if it is a TimeoutError too
        except TimeoutError as error:
            if limit.expired():
                raise ToolTimeout(f"{self.name} took longer than {self.timeout_s:g} s") from error
            if isinstance(error, AgentError):
                raise  # it says itself what it is
            raise ToolError(f"{self.name}: {error or 'it timed out'}") from error
        except Exception as error:
            raise ToolError(f"{self.name}: {type(error).__name__}: {error}") from error
        return to_plain(result, f"result of {self.name}")

    async def _perform(self, before: tuple[Any, ...], values: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(*before, **values)
        # A plain function may block: it has a thread, which a timeout leaves behind.
        return await _THREADS.run(functools.partial(self._function, *before, **values))


class ToolOptions(TypedDict, total=False):
    """The keyword arguments of `tool`, for those who pass them on."""

    name: str
    description: str
    policy: Policy
    timeout: float
    isolation: Level
    price: int
    reconcile: Reconcile


def replayed(
    tool: Tool, answer: Callable[[ToolContext, Mapping[str, Any]], Awaitable[Any]], *, policy: Policy | None = None
) -> Tool:
    """A tool that looks the same to a model, and has this answer to whatever it is called with.

    Without another policy it keeps its own: what became of a call before is found out as ever.
    """

    async def call(context: ToolContext, **arguments: Any) -> Any:
        return await answer(context, arguments)

    same = dataclasses.replace(tool, price=0, isolation=Level.NONE, _function=call, _takes_context=True)
    return same if policy is None else dataclasses.replace(same, policy=policy, reconcile=None)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    policy: Policy = Policy.ONCE,
    timeout: float = _USUAL_S,
    isolation: Level = Level.NONE,
    price: int = 0,
    reconcile: Reconcile | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    policy: Policy = Policy.ONCE,
    timeout: float = _USUAL_S,
    isolation: Level = Level.NONE,
    price: int = 0,
    reconcile: Reconcile | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function. Nothing is called twice unless its policy says that it may be."""

    def make(function: Callable[..., Any]) -> Tool:
        where = f"{function.__module__}.{function.__qualname__}"
        _check_options(where, policy=policy, timeout=timeout, price=price, reconcile=reconcile)
        shape, takes_context = read_signature(function, where, ToolContext)
        text = description or inspect.getdoc(function)
        if not text:
            raise BadHandler(f"{where}: a tool needs a description, or a docstring: a model goes by it")
        return Tool(
            name=name or function.__name__,
            description=text,
            parameters=schema(shape, where),
            policy=policy,
            timeout_s=timeout,
            isolation=isolation,
            price=price,
            reconcile=reconcile,
            _function=function,
            _read=reader(shape),
            _takes_context=takes_context,
        )

    return make if function is None else make(function)


def _check_options(where: str, *, policy: Policy, timeout: float, price: int, reconcile: Reconcile | None) -> None:
    if timeout <= 0:
        raise BadHandler(f"{where}: timeout: more than 0 seconds, not {timeout:g}")
    if price < 0:
        raise BadHandler(f"{where}: price: 0 or more micro-credits, not {price}")
    if (policy == Policy.RECONCILE) != (reconcile is not None):
        raise BadHandler(f"{where}: reconcile: a function goes with the policy 'reconcile', and with no other")
