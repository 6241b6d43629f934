"""When a provider has enough, no worker starts more work for it: for jobs of one's own that ask one provider.

They wait in one queue. What the provider says in the headers of an answer, or by refusing one, closes that
queue for all workers: in its store, so that no other one needs to run into the same wall. Tasks of agents share
their queues with those of other providers, and go by the health of each instead.
"""

from bullpen.agents.llm.allowance import Allowance
from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import ModelError, ModelLimited, ModelOverloaded, RateLimited
from bullpen.queue.queue import Queue

_SOON_S = 5.0
"""For how long to hold back where the provider does not say."""


def hold_s(told: Allowance | ModelError | None, now_ms: int, *, needs_tokens: int = 1) -> float:
    """For how long nothing should be asked, after this; 0 if there is nothing against it."""
    match told:
        case Allowance():
            return told.hold_s(now_ms, needs_tokens=needs_tokens)
        case ModelLimited() | ModelOverloaded():
            return _SOON_S if told.retry_after is None else told.retry_after
        case _:
            return 0.0


async def hold_back(
    queue: Queue, told: Allowance | ModelError | None, *, needs_tokens: int = 1, clock: Clock = SYSTEM_CLOCK
) -> float:
    """Close the provider's queue on all workers for as long as another call would be refused; for how many seconds.

    `told` is the allowance of a reply or the error in its place, `needs_tokens` what a call usually takes.
    """
    seconds = hold_s(told, clock.now_ms(), needs_tokens=needs_tokens)
    if seconds > 0:
        await queue.close_for(seconds)
    return seconds


def limited(error: ModelLimited | ModelOverloaded) -> RateLimited:
    """What a handler raises that cannot go on without an answer: its job goes back, and its queue is closed.

    No attempt is used.
    """
    return RateLimited(_SOON_S if error.retry_after is None else error.retry_after, whole_queue=True)
