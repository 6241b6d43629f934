"""Arguments against a JSON schema that somebody else wrote, by the `jsonschema` package, which `mcp` brings."""

from collections.abc import Callable, Mapping
from typing import Any

from bullpen.errors import BadOption


def reader_of(schema: Mapping[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """Takes arguments that fit; ValueError names the field that does not. BadOption for what is no schema."""
    from jsonschema import Draft202012Validator, SchemaError, ValidationError  # type: ignore[import-untyped]  # it has no types
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]  # the same
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise BadOption(f"schema: {error.message}") from None
    # An empty registry: what the schema refers to elsewhere is not fetched.
    validator = kind(schema, registry=Registry())

    def read(arguments: Any) -> dict[str, Any]:
        if not isinstance(arguments, dict):
            raise ValueError("Expected `object`")  # noqa: TRY004 - it is what the model sent
        try:
            validator.validate(arguments)
        except ValidationError as error:
            raise ValueError(f"{error.message[:500]} - at `{error.json_path}`") from None
        except Unresolvable as error:
            raise ValueError(f"the schema refers to what is not in it: {error.ref}") from None
        return arguments

    return read
