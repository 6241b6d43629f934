"""What the worker of one application finds out about a provider, that of another knows."""

import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.llm.health import HealthRules
from bullpen.agents.llm.models import table_of
from bullpen.agents.llm.openai import OpenAIProvider
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.scripted import Fault, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, user
from bullpen.errors import ModelError
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from tests.agents.llm.asking import endpoint
from tests.agents.llm.openai_server import whole
from tests.agents.llm.wire_server import serving
from tests.agents.runs.conftest import TENANT, working
from tests.agents.runs.models import MODEL, MODELS
from tests.support.places import Place

_PATIENCE_S = 60
_REQUEST = Request(model=MODEL, messages=(user("hello?"),))


async def test_a_provider_that_is_down_is_not_asked_by_others(place: Place, records: Records) -> None:
    asked: list[Request] = []

    def fails(request: Request) -> Turn:
        asked.append(request)
        return Turn(error=Fault("model-timeout"))

    async with Bullpen(place.store()) as one, Bullpen(place.store()) as other:
        async with (
            Agents(one, records, providers=[ScriptedProvider(fails)], models=MODELS) as first,
            Agents(other, records, providers=[ScriptedProvider(fails)], models=MODELS) as second,
        ):
            router, their_router = (await first.workshop()).provider, (await second.workshop()).provider
            for _ in range(HealthRules().down_after):
                with pytest.raises(ModelError, match="as the script says"):
                    await complete(router, _REQUEST)
            with pytest.raises(ModelError, match="no provider of it is in health"):
                await complete(their_router, _REQUEST)
    assert len(asked) == HealthRules().down_after


@pytest.mark.parametrize(
    "status, said, code",
    [
        (400, {"message": "temperature: too hot"}, "E007"),
        (401, {"message": "Incorrect API key"}, "E007"),
        (403, {"message": "not in your country"}, "E007"),
        (404, {"code": "model_not_found", "message": "no gpt"}, "E001"),
    ],
)
async def test_a_refusal_for_good_fails_each_task_at_once_and_never_the_provider(
    place: Place, records: Records, status: int, said: dict[str, str], code: str
) -> None:
    """Were the provider down after some of them, the next tasks would wait a minute for each of their attempts."""
    tasks = HealthRules().down_after + 1
    model = {"provider": "openai", "context_window": 100_000, "max_output": 4_096, "input": "1", "output": "1"}
    models = table_of({"version": "test", "models": {"gpt": model}})
    async with serving(whole({"error": said}, status)) as server, Bullpen(place.store()) as pen:
        providers = [OpenAIProvider(endpoint(server.url))]
        async with Agents(pen, records, providers=providers, models=models, model="gpt") as agents, working(agents):
            await agents.deposit(TENANT, 1_000)
            for _ in range(tasks):
                sent = await agents.submit("go", tenant=TENANT)
                error = (await agents.result(sent.run_id, timeout=_PATIENCE_S)).error
                assert error is not None
                assert (error.code, error.retryable) == (code, False)
                assert f"HTTP {status}" in error.message
                events = [event.kind async for event in agents.follow(sent.run_id)]
                assert ProgressKind.JOB_RETRYING not in events
        assert len(server.asked) == tasks
