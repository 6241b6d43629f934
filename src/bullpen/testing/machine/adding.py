"""Rules of producers."""

from collections.abc import Sequence

from hypothesis.stateful import initialize, rule

from bullpen.errors import JobError
from bullpen.job.spec import Dedup, JobSpec, Keep, NewJob
from bullpen.stores.base import Added, AddOutcome
from bullpen.testing.machine import drawing
from bullpen.testing.machine.checks import Checks
from bullpen.testing.machine.walk import do, lose_answer, or_refusal


class Adding(Checks):
    @initialize(batch=drawing.batches, dedup=drawing.deduplications)
    def start(self, batch: list[drawing.Draft], dedup: Dedup) -> None:
        """One kind of deduplication in a walk: so its subjects meet."""
        self._dedup = dedup
        self.add(batch, lost=False)

    @rule(batch=drawing.batches, lost=drawing.seldom)
    def add(self, batch: list[drawing.Draft], lost: bool) -> None:
        jobs = [self._named(draft) for draft in batch]
        request = self._fresh("request")
        self._expect_added(jobs, self._ask_to_add(jobs, request, lost=lost))

    @rule(batch=drawing.batches)
    def crash_while_adding(self, batch: list[drawing.Draft]) -> None:
        """Nobody knows whether it took effect; asking again makes it so, once."""
        jobs = [self._named(draft) for draft in batch]
        request = self._fresh("request")
        self._run(lose_answer(lambda: self._store.add(jobs, request=request)))
        self._crash()
        self._expect_added(jobs, self._ask_to_add(jobs, request))

    def _ask_to_add(self, jobs: list[NewJob], request: str, *, lost: bool = False) -> Sequence[Added] | type[JobError]:
        """The answer, or the refusal of a full group, which is not remembered: asked again, it may be taken."""
        if lost:
            self._run(lose_answer(lambda: self._store.add(jobs, request=request)))
        answer = self._run(or_refusal(self._store.add(jobs, request=request)))
        if isinstance(answer, type):
            self._look()
            return answer
        return self._ask(request, lambda: self._store.add(jobs, request=request))

    def _expect_added(self, jobs: Sequence[NewJob], answer: Sequence[Added] | type[JobError]) -> None:
        if isinstance(answer, type):
            assert do(lambda: self._model.add_within_sizes(jobs)) is answer
            return
        for job, added in zip(jobs, answer, strict=True):
            if job.id is None and added.outcome in (AddOutcome.ADDED, AddOutcome.REPLACED):
                self._model.given_ids[job.name] = added.id
        assert list(answer) == do(lambda: self._model.add_within_sizes(jobs))

    def _named(self, draft: drawing.Draft) -> NewJob:
        """With a name of its own, by which it is known again whatever id the store gives."""
        options = dict(draft)
        queue, own_id, data = options.pop("queue"), options.pop("id", None), options.pop("data", b"{}")
        completed, failed = drawing.KEPT[queue]
        none = Keep(count=0) if options.pop("keep_none", False) else None
        options["keep_completed"], options["keep_failed"] = none or completed, none or failed
        if "start_in_ms" in options:
            options["start_by_ms"] = self._model.now_ms + options.pop("start_in_ms")
        if "dedup" in options:
            options["dedup"] = self._dedup
            if self._dedup.keep_last_if_active:
                options.pop("lifo", None)  # it may be added amid a rescue: who then is at the head is left open
        return NewJob(queue, self._fresh("job"), data, own_id, JobSpec(**options))
