"""Rules of those who lost an answer: they ask again, or give back what it gave."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from bullpen.job.record import Lease
from bullpen.stores.base import REQUEST_MEMORY_MS, Exchanged
from bullpen.testing.machine.model import ModelJob
from bullpen.testing.machine.walk import Asked
from bullpen.testing.machine.working import Working, leases_of


class Requesting(Working):
    @precondition(lambda self: self._remembered())
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """The first answer again; of the jobs it gave, those that are no longer held may be left out."""
        asked = data.draw(st.sampled_from(self._remembered()), "asked")
        answer = self._run(asked.again())
        self._look()
        if isinstance(asked.answer, Exchanged):
            assert isinstance(answer, Exchanged)
            assert answer.settled == asked.answer.settled
            assert answer.claimed.next_due_ms == asked.answer.claimed.next_due_ms
            first, again = leases_of(asked.answer.claimed), leases_of(answer.claimed)
            assert again == [lease for lease in first if lease in again]
            assert self._held(again) == self._held(first)
        else:
            assert answer == asked.answer

    @precondition(lambda self: self._remembered_claims())
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        claims = self._remembered_claims()
        apt = [request for request, leases in claims.items() if self._held(leases)]
        request = data.draw(st.sampled_from([*apt * 4, *claims]), "request")
        count = self._run(self._store.abandon(request))
        self._look()
        assert count == self._model.abandon(claims[request])

    def _remembered(self) -> list[Asked]:
        since_ms = self._model.now_ms - REQUEST_MEMORY_MS
        return [asked for asked in self._asked if asked.at_ms > since_ms]

    def _remembered_claims(self) -> dict[str, list[Lease]]:
        """What each claim or exchange gave, by its request."""
        return {
            asked.request: leases_of(asked.answer.claimed)
            for asked in self._remembered()
            if isinstance(asked.answer, Exchanged)
        }

    def _held(self, leases: Sequence[Lease]) -> list[ModelJob]:
        return [job for lease in leases if (job := self._model.held(lease)) is not None]
