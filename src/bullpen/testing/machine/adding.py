"""Rules of producers."""

from collections.abc import Sequence

from hypothesis.stateful import initialize, rule

from bullpen.errors import JobError
from bullpen.job.spec import Dedup, JobSpec, Keep, NewJob
from bullpen.stores.base import Added, AddOutcome
from bullpen.testing.machine import drawing
from bullpen.testing.machine.checks import Checks
from bullpen.testing.machine.walk import do, lose_answer


class Adding(Checks):
    @initialize(batch=drawing.batches, dedup=drawing.deduplications)
    def start(self, batch: list[drawing.Draft], dedup: Dedup) -> None:
        """One kind of deduplication in a walk: so its subjects meet."""
        self._dedup = dedup
        self.add(batch, lost=False)

    @rule(batch=drawing.batches, lost=drawing.seldom)
    def add(self, batch: list[drawing.Draft], lost: bool) -> None:
        jobs = self._named_apart(batch)
        request = self._fresh("request")
        self._expect_added(jobs, self._ask_to_add(jobs, request, lost=lost))

    @rule(batch=drawing.batches)
    def crash_while_adding(self, batch: list[drawing.Draft]) -> None:
        """Nobody knows whether it took effect; asking again makes it so, once."""
        jobs = self._named_apart(batch)
        request = self._fresh("request")
        self._run(lose_answer(lambda: self._store.add(jobs, request=request)))
        self._crash()
        self._expect_added(jobs, self._ask_to_add(jobs, request))

    def _ask_to_add(self, jobs: list[NewJob], request: str, *, lost: bool = False) -> Sequence[Added] | type[JobError]:
        return self._ask(request, lambda: self._store.add(jobs, request=request), lost=lost)

    def _expect_added(self, jobs: Sequence[NewJob], answer: Sequence[Added] | type[JobError]) -> None:
        self._learn_ids(jobs, answer)
        assert answer == do(lambda: self._model.add(jobs))

    def _learn_ids(self, jobs: Sequence[NewJob], answer: Sequence[Added] | type[JobError]) -> None:
        if isinstance(answer, type):
            return
        for job, added in zip(jobs, answer, strict=True):
            if job.id is None and added.outcome in (AddOutcome.ADDED, AddOutcome.REPLACED):
                self._model.given_ids[job.name] = added.id
            if added.children:
                self._learn_ids(job.children, added.children)

    def _named_apart(self, batch: Sequence[drawing.Draft], *, as_children: bool = False) -> list[NewJob]:
        """No id twice where that is refused: in a batch with trees."""
        taken: set[object] = set()
        is_strict = as_children or any("children" in draft for draft in batch)
        return [self._named(_apart(draft, taken) if is_strict else draft) for draft in batch]

    def _named(self, draft: drawing.Draft, *, is_child: bool = False) -> NewJob:
        """With a name of its own, by which it is known again whatever id the store gives."""
        options = dict(draft)
        name, below = self._fresh("job"), options.pop("children", ())
        if below or is_child or "on_failure" in options:
            options.pop("dedup", None)
        queue, own_id, data = options.pop("queue"), options.pop("id", None), options.pop("data", b"{}")
        completed, failed = drawing.KEPT[queue]
        none = Keep(count=0) if options.pop("keep_none", False) else None
        options["keep_completed"], options["keep_failed"] = none or completed, none or failed
        if "start_in_ms" in options:
            if is_child or own_id is not None:
                # It may be a child that ends amid the turns of a claim: who then is next is left open.
                options.pop("group", None)
            options["start_by_ms"] = self._model.now_ms + options.pop("start_in_ms")
        if "dedup" in options:
            options["dedup"] = self._dedup
            if self._dedup.keep_last_if_active:
                options.pop("lifo", None)  # it may be added amid a rescue: who then is at the head is left open
        children = tuple(self._named(child, is_child=True) for child in below)
        return NewJob(queue, name, data, own_id, JobSpec(**options), children)


def _apart(draft: drawing.Draft, taken: set[object]) -> drawing.Draft:
    own = {**draft}
    name = own["queue"], own.get("id")
    if name in taken:
        del own["id"]
    elif "id" in own:
        taken.add(name)
    if "children" in own:
        own["children"] = [_apart(child, taken) for child in own["children"]]
    return own
