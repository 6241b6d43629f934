"""What all bodies and answers share."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class Body(BaseModel):
    """What a caller sends."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """What a caller gets; read off our own values by their names."""

    model_config = ConfigDict(from_attributes=True)


class Page(Shown, Generic[T]):
    """A part of a list. `next_cursor` asks for the next one; null at the end."""

    items: list[T]
    next_cursor: str | None = None


class Count(Shown):
    count: int


class Done(Shown):
    ok: bool = True
