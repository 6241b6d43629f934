"""Providers as the environment names them: by the names that their own tools use."""

from collections.abc import Mapping

from bullpen.agents.llm.anthropic import ANTHROPIC_URL, AnthropicProvider
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.openai import OPENAI_URL, OpenAIProvider
from bullpen.agents.llm.provider import Provider
from bullpen.errors import BadOption
from bullpen.settings import Settings

_KINDS = (
    ("OPENAI", OPENAI_URL, OpenAIProvider),
    ("ANTHROPIC", ANTHROPIC_URL, AnthropicProvider),
)


def providers_from(environment: Mapping[str, str] | None = None) -> list[Provider]:
    """One for each of `OPENAI_` and `ANTHROPIC_` of which `API_KEY` or `BASE_URL` is set.

    An address without a key is taken for a server that asks for none. BadOption names what is wrong.
    """
    found = Settings() if environment is None else environment
    providers: list[Provider] = []
    for word, usual_url, kind in _KINDS:
        key, url = found.get(f"{word}_API_KEY", "").strip(), found.get(f"{word}_BASE_URL", "").strip()
        if not key and not url:
            continue
        try:
            providers.append(kind(Endpoint(base_url=url or usual_url, key=key)))
        except BadOption as error:
            raise BadOption(f"{word}_BASE_URL or {word}_API_KEY: {error}") from None
    return providers
