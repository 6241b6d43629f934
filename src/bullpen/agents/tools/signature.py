"""What the hints of a tool's function say: the shape of its arguments, how they are read, their JSON schema."""

import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from bullpen.errors import BadHandler
from bullpen.jobtypes.arguments import from_plain


def read_signature(function: Callable[..., Any], where: str, context: type) -> tuple[type[msgspec.Struct], bool]:
    """The shape of its arguments, and whether its first parameter is a `context`, which says what call it is."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadHandler(f"{where}: a type hint cannot be resolved: {error}; define it at module level") from error
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and hints.get(parameters[0].name) is context
    fields: list[Any] = []
    for parameter in parameters[takes_context:]:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise BadHandler(f"{where}: *{parameter.name} has no place in a schema; name each argument")
        if parameter.name not in hints:
            raise BadHandler(f"{where}: {parameter.name} has no type hint, which a model would go by")
        fields.append(_field(parameter, hints[parameter.name]))
    return msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True), takes_context


def reader(shape: type[msgspec.Struct]) -> Callable[[Any], dict[str, Any]]:
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


def schema(shape: type[msgspec.Struct], where: str) -> dict[str, Any]:
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
