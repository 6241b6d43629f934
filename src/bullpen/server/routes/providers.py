"""How providers of models are doing."""

from typing import Annotated

from bullpen.agents.llm.health import Health
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.models.providers import ProviderShown, ProvidersShown
from bullpen.server.routes.routing import TheSite, family

router = family("providers")


@router.get("/providers")
async def providers(caller: Annotated[Caller, allowed("providers:read", whole=True)], site: TheSite) -> ProvidersShown:
    """The providers of the table of models and all that workers asked, as they found them last."""
    found = await site.provider_health()
    return ProvidersShown(items=[_shown(name, health) for name, health in found.items()])


def _shown(name: str, health: Health) -> ProviderShown:
    return ProviderShown(
        name=name,
        state=health.standing,
        since_ms=health.since_ms or None,
        last_error=health.error or None,
        failures=health.failures,
        next_probe_ms=health.probe_at_ms or None,
        limited_until_ms=health.limited_until_ms or None,
    )
