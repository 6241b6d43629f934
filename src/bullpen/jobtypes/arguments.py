"""A handler's signature as the shape of its payload.

Arguments travel as one JSON object by name, so that any producer can write them. They are
checked against the type hints when the job is added and again before the handler runs; fields
that the handler does not know are passed over, so that producers may be ahead of workers.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bullpen.errors import BadData, BadHandler


class Arguments:
    """What a handler takes after its context."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._where = f"{function.__module__}.{function.__qualname__}"
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        if not parameters or parameters[0].kind not in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            raise BadHandler(f"{self._where}: the first parameter of a handler is its context")
        self._parameters = parameters[1:]
        for parameter in self._parameters:
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise BadHandler(f"{self._where}: *{parameter.name} has no place in a payload; name each argument")
        self._signature = inspect.Signature(self._parameters)
        hints = _hints(function, self._where)
        self.returns: Any = hints.get("return", Any)
        self._shape = msgspec.defstruct(
            "Arguments",
            [self._field(parameter, hints.get(parameter.name, Any)) for parameter in self._parameters],
        )
        self._check_hints()

    def _field(self, parameter: inspect.Parameter, hint: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
        if parameter.default is inspect.Parameter.empty:
            return parameter.name, hint
        # Unset rather than the default itself: the handler's own default stands, whatever it is.
        return parameter.name, hint, msgspec.UNSET

    def _check_hints(self) -> None:
        """A type that no payload can be read into is the author's mistake, not the caller's."""
        try:
            msgspec.convert({}, self._shape, dec_hook=from_plain)
        except msgspec.ValidationError:
            pass  # an argument is required, and none was given
        except TypeError as error:
            raise BadHandler(f"{self._where}: a type hint cannot be read from JSON: {error}") from error

    def pack(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call as a payload; BadData names the one that does not fit."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise BadData(f"{self._where}: {error}") from None
        payload = {name: to_plain(value, f"{self._where}: {name}") for name, value in bound.arguments.items()}
        self.unpack(payload)
        return payload

    def unpack(self, payload: Any) -> dict[str, Any]:
        """The handler's arguments from a payload; BadData names the field that does not fit."""
        try:
            found = msgspec.convert(payload, self._shape, dec_hook=from_plain)
        except msgspec.ValidationError as error:
            raise BadData(f"{self._where}: {error}") from None
        values = ((parameter.name, getattr(found, parameter.name)) for parameter in self._parameters)
        return {name: value for name, value in values if value is not msgspec.UNSET}


def to_plain(value: Any, what: str) -> Any:
    """A value as JSON knows it; Pydantic models by their own way."""
    try:
        return msgspec.to_builtins(value, enc_hook=_encode_unknown)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise BadData(f"{what} cannot be written as JSON: {error}") from None


def from_plain(hint: type, value: Any) -> Any:
    """A value of a type that msgspec does not know: Pydantic models by their own way."""
    validate = getattr(hint, "model_validate", None)
    if validate is None:
        if isinstance(value, hint):
            return value
        raise NotImplementedError(f"values of {hint} cannot be read from JSON")
    try:
        return validate(value)
    except ValueError as error:
        raise ValueError(str(error)) from None


def convert(value: Any, hint: Any, what: str) -> Any:
    """A JSON value as the hinted type; BadData if it does not fit."""
    if hint is Any or hint is None:
        return value
    try:
        return msgspec.convert(value, hint, dec_hook=from_plain)
    except msgspec.ValidationError as error:
        raise BadData(f"{what}: {error}") from None


def _encode_unknown(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise NotImplementedError(f"objects of type {type(value).__name__} are not supported")
    return dump(mode="json")


def _hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadHandler(f"{where}: a type hint cannot be resolved: {error}; define it at module level") from error
