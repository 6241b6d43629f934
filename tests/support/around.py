"""A store around another: a subclass changes some verbs, the rest is the other's."""

from typing import Any

from bullpen.stores.base import Store

_AnyStore: Any = object


class StoreAround(_AnyStore):  # type: ignore[misc]  # what is not defined here is the inner store's
    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
