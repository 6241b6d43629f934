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
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypedDict, TypeVar, overload

import msgspec

from bullpen.agents.llm.words import ToolSpec
from bullpen.agents.sandbox.base import Level, Sandbox
from bullpen.agents.sandbox.turns import counted_by
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.threads import Threads
from bullpen.errors import AgentError, BadData, BadHandler, ToolError, ToolTimeout
from bullpen.jobtypes.arguments import from_plain, to_plain

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
        shape, takes_context = _read_signature(function, where)
        text = description or inspect.getdoc(function)
        if not text:
            raise BadHandler(f"{where}: a tool needs a description, or a docstring: a model goes by it")
        return Tool(
            name=name or function.__name__,
            description=text,
            parameters=_schema(shape, where),
            policy=policy,
            timeout_s=timeout,
            isolation=isolation,
            price=price,
            reconcile=reconcile,
            _function=function,
            _read=_reader(shape),
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


def _read_signature(function: Callable[..., Any], where: str) -> tuple[type[msgspec.Struct], bool]:
    """The shape of its arguments, and whether it wants to know of its call."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadHandler(f"{where}: a type hint cannot be resolved: {error}; define it at module level") from error
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and hints.get(parameters[0].name) is ToolContext
    fields: list[Any] = []
    for parameter in parameters[takes_context:]:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise BadHandler(f"{where}: *{parameter.name} has no place in a schema; name each argument")
        if parameter.name not in hints:
            raise BadHandler(f"{where}: {parameter.name} has no type hint, which a model would go by")
        fields.append(_field(parameter, hints[parameter.name]))
    return msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True), takes_context


def _reader(shape: type[msgspec.Struct]) -> Callable[[Any], dict[str, Any]]:
    def read(arguments: Any) -> dict[str, Any]:
        found = msgspec.convert(arguments, shape, dec_hook=from_plain)
        given = ((name, getattr(found, name)) for name in shape.__struct_fields__)
        return {name: value for name, value in given if value is not msgspec.UNSET}

    return read


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    if typing.get_origin(hint) is Annotated:
        inner, *notes = typing.get_args(hint)
        # A plain text beside a hint is what a model is told of the argument.
        told = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
        hint = Annotated[(inner, *told)]
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, hint
    return parameter.name, hint, msgspec.UNSET


def _schema(shape: type[msgspec.Struct], where: str) -> dict[str, Any]:
    """Of an object, whole in itself: what it refers to comes along."""
    try:
        (top,), parts = msgspec.json.schema_components(
            [shape], schema_hook=_schema_of_others, ref_template="#/$defs/{name}"
        )
    except TypeError as error:
        raise BadHandler(f"{where}: a type hint has no JSON schema: {error}") from error
    own = parts.pop(str(top["$ref"]).rpartition("/")[2])
    own.pop("title", None)
    return {**own, "$defs": parts} if parts else own


def _schema_of_others(hint: type) -> dict[str, Any]:
    """Of Pydantic models by their own way."""
    make = getattr(hint, "model_json_schema", None)
    if make is None:
        raise NotImplementedError
    schema: dict[str, Any] = make()
    return schema
