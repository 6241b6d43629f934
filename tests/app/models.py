"""Arguments of every kind, and job types that another process can import."""

import dataclasses
import os
from typing import TypedDict

import msgspec
import pydantic

from bullpen import Bullpen, Context


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Address(TypedDict):
    street: str
    town: str


class Order(msgspec.Struct):
    number: int
    lines: list[str] = []


class User(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


far = Bullpen("sqlite:unused.db")
"""Its job types are moved to the test's own store by `pen.using`."""


@far.job(queue="far", in_process=True)
def where_am_i(ctx: Context, user: User, times: int = 2) -> dict[str, str | int]:
    ctx.log(f"hello {user.name}")
    return {"pid": os.getpid(), "name": user.name * times}


@far.job(queue="far", in_process=True)
def older(ctx: Context, user: User) -> User:
    return User(name=user.name, age=user.age + 1)


@far.job(queue="far", in_process=True)
def end_it(ctx: Context) -> None:
    os._exit(3)
