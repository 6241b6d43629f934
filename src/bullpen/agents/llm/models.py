"""The table of models: who serves each, how much it reads and writes, and its price; and what tools cost."""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib import resources
from math import ceil
from pathlib import Path
from typing import Any

import msgspec

from bullpen.agents.llm.prices import MICRO, Price, most_input_tokens
from bullpen.agents.llm.words import Request, Usage
from bullpen.errors import BadOption, ModelError, ModelUnknown
from bullpen.settings import told

MODELS = "BULLPEN_MODELS"


class Model(Price, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of the table."""

    name: str = ""
    """As requests name it."""
    provider: str
    served_as: str = ""
    """As its provider names it, if otherwise."""
    context_window: int
    """How many tokens it reads and writes at most in one call."""
    max_output: int
    fallbacks: tuple[str, ...] = ()
    """Models to ask in this order when it does not answer."""
    tokens_per_byte: Decimal = Decimal(1)
    """More than 1 for a tokenizer that makes more tokens than a text has bytes, which none that we know of does."""

    def __post_init__(self) -> None:
        for field in ("input", "output", "cached_input", "cache_write"):
            price = getattr(self, field)
            if price is not None and not (price.is_finite() and price >= 0):
                raise ValueError(f"{field}: a price of 0 or more, not {price}")
        for field in ("context_window", "max_output", "tokens_per_byte"):
            if not getattr(self, field) > 0:
                raise ValueError(f"{field}: more than 0, not {getattr(self, field)}")

    def fitted(self, request: Request) -> Request:
        """The request as it is sent to this model: by its provider's name, and for no more than it can write."""
        return msgspec.structs.replace(
            request, model=self.served_as or self.name, max_tokens=min(request.max_tokens, self.max_output)
        )


class ModelTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All models that may be asked. A version names its prices for good: change one, change both."""

    version: str
    credits_per_dollar: Decimal = Decimal(100)
    models: dict[str, Model] = {}
    tools: dict[str, Decimal] = {}
    """Dollars for a call, by the tool's name."""

    def model(self, name: str) -> Model:
        """ModelUnknown, with what may have been meant."""
        found = self.models.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.models, n=3)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ModelUnknown(f"model: there is no {name!r} in the table of models{meant}", model=name)
        return found

    def order(self, name: str) -> Sequence[Model]:
        """The model, and then those to fall back to, each once."""
        first = self.model(name)
        return [first, *(self.model(one) for one in dict.fromkeys(first.fallbacks) if one != name)]

    def price(self, name: str, usage: Usage) -> int:
        """What a call cost, in micro-credits."""
        return self.model(name).of(usage, self.credits_per_dollar)

    def tool_price(self, name: str) -> int | None:
        """What a call of a tool costs, in micro-credits; None where the table does not say."""
        dollars = self.tools.get(name)
        return None if dollars is None else ceil(dollars * self.credits_per_dollar * MICRO)

    def cost_of(self, error: ModelError) -> int | None:
        """What a call that failed cost, in micro-credits; None where nobody knows."""
        if not error.may_cost:
            return 0
        if not (error.is_whole and isinstance(error.usage, Usage) and error.model in self.models):
            return None
        return self.price(error.model, error.usage)

    def most(self, request: Request) -> int:
        """What the call can cost at most, in micro-credits, whichever model of the order answers."""
        return max(self._most_of(model, request) for model in self.order(request.model))

    def _most_of(self, model: Model, request: Request) -> int:
        # What does not fit into the window is refused, not read.
        read = min(most_input_tokens(request, model.tokens_per_byte), model.context_window)
        return model.most(read, model.fitted(request).max_tokens, self.credits_per_dollar)

    def under(self, other: "ModelTable") -> "ModelTable":
        """This table with another one laid over it: its lines replace ours, its version and credits stand."""
        models, tools = {**self.models, **other.models}, {**self.tools, **other.tools}
        return msgspec.structs.replace(other, models=models, tools=tools).checked()

    def checked(self) -> "ModelTable":
        """With the name of each model in it; BadOption for a fallback that is not there."""
        if self.credits_per_dollar <= 0:
            raise BadOption(f"credits_per_dollar: more than 0, not {self.credits_per_dollar}")
        for name, price in self.tools.items():
            if not (price.is_finite() and price >= 0):
                raise BadOption(f"tools.{name}: dollars for a call, 0 or more, not {price}")
        named = {name: msgspec.structs.replace(model, name=name) for name, model in self.models.items()}
        for name, model in named.items():
            for fallback in model.fallbacks:
                if fallback not in named:
                    raise BadOption(f"models.{name}.fallbacks: there is no {fallback!r} in the table of models")
        return msgspec.structs.replace(self, models=named)


def table_of(data: Mapping[str, Any], *, over: ModelTable | None = None, what: str = "models") -> ModelTable:
    """A table from plain values, laid over another; BadOption names what is wrong in it."""
    try:
        table = msgspec.convert(data, ModelTable)
    except (msgspec.ValidationError, ValueError) as error:
        raise BadOption(f"{what}: {error}") from None
    return table.checked() if over is None else over.under(table)


def table_in(text: str, *, over: ModelTable | None = None, what: str = "models") -> ModelTable:
    """The same from TOML, whose numbers are taken as they are written: 0.1 is a tenth."""
    try:
        data = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise BadOption(f"{what}: {error}") from None
    return table_of(data, over=over, what=what)


def built_in() -> ModelTable:
    """The models that Bullpen knows."""
    return table_in(resources.files("bullpen.agents.llm").joinpath("models.toml").read_text("utf-8"))


def models_from(path: str | Path | None = None) -> ModelTable:
    """The built-in table, under the one in a file: the one that is named here, or by `BULLPEN_MODELS`."""
    path = path or told(MODELS)
    if not path:
        return built_in()
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"{MODELS}: {str(path)!r} cannot be read: {error}") from None
    return table_in(text, over=built_in(), what=str(path))
