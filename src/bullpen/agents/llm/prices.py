"""What a call costs, and what it can cost at most. Money is whole micro-credits; nothing here is a float.

A **credit** is the unit that people see, one hundredth of a dollar unless the table says otherwise. A
**micro-credit** is a millionth of it: the unit of ledgers. A price of d dollars per million tokens is
d × credits per dollar micro-credits for each token, so the sums stay exact; what is left of a micro-credit
is rounded up, once for each call.
"""

import functools
import math
from decimal import Decimal
from fractions import Fraction

import msgspec

from bullpen.agents.llm.words import Request, Usage, size_of, to_json
from bullpen.errors import BadOption

MICRO = 1_000_000
"""Micro-credits in a credit."""

_PER_REQUEST = 64
_PER_MESSAGE = 16
"""Marks that a provider puts around each turn."""
_WITH_TOOLS = 1_024
"""What a provider tells the model about tools as such; Anthropic's longest is about half of it."""
_PER_TOOL = 64


class Price(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Dollars per million tokens, by direction."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    """As `input` unless told."""
    cache_write: Decimal | None = None
    """As `input` unless told."""

    def of(self, usage: Usage, credits_per_dollar: Decimal) -> int:
        """The price in micro-credits, rounded up."""
        cached = min(usage.cached_input_tokens, usage.input_tokens)
        written = min(usage.cache_write_tokens, usage.input_tokens - cached)
        uncached = usage.input_tokens - cached - written
        dollars_a_million = uncached * _exact(self.input) + usage.output_tokens * _exact(self.output)
        if cached:
            dollars_a_million += cached * _exact(self.input if self.cached_input is None else self.cached_input)
        if written:
            dollars_a_million += written * _exact(self.input if self.cache_write is None else self.cache_write)
        return math.ceil(dollars_a_million * _exact(credits_per_dollar))

    def most(self, input_tokens: int, output_tokens: int, credits_per_dollar: Decimal) -> int:
        """The highest price of so many tokens at most, whatever the cache does."""
        dearest = max(price for price in (self.input, self.cached_input, self.cache_write) if price is not None)
        flat = Price(input=dearest, output=self.output)
        return flat.of(Usage(input_tokens, output_tokens), credits_per_dollar)


@functools.lru_cache(maxsize=1_000)
def _exact(number: Decimal) -> Fraction:
    """Of the few numbers of a table; to make a fraction of one takes longer than all sums of a call."""
    return Fraction(number)


def most_input_tokens(request: Request, tokens_per_byte: Decimal = Decimal(1)) -> int:
    """More tokens than any tokenizer makes of the request: no token is less than a byte, and the marks are bounded."""
    size = size_of(request.messages) + len(to_json(request.tools))
    marks = _PER_REQUEST + _PER_MESSAGE * len(request.messages)
    if request.tools:
        marks += _WITH_TOOLS + _PER_TOOL * len(request.tools)
    return math.ceil(size * _exact(tokens_per_byte)) + marks


def micro(credits_: int | str | Decimal) -> int:
    """Credits as micro-credits; BadOption where that is no whole number."""
    exact = Fraction(credits_) * MICRO
    if exact.denominator != 1:
        raise BadOption(f"credits: {credits_} is not a whole number of micro-credits")
    return int(exact)


def as_credits(amount: int) -> Decimal:
    """Micro-credits as people see them."""
    return (Decimal(amount) / MICRO).normalize() + 0
