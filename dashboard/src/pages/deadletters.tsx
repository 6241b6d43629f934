// Jobs that failed for good, and what to do with all of them that fit.
import { actOnDeadLetters, type JobFilter } from "../api/jobs";
import { plural } from "../format";
import { described, filterHere, Filters } from "../jobs/filters";
import { JobList } from "../jobs/list";
import { Views } from "../jobs/views";
import { say, sayProblem } from "../state/toasts";
import { may } from "../state/session";
import { Button } from "../ui/button";
import { confirm } from "../ui/dialog";
import { Page } from "../ui/page";

export function DeadLettersPage() {
  const filter = filterHere({ state: "failed" });
  return (
    <Page
      title="Dead letters"
      lead="Jobs that failed for good. They stay until they are retried or purged."
      actions={
        <>
          {may("jobs:retry") && (
            <Button icon="retry" onClick={() => void act("retry", filter)}>
              Retry all that fit
            </Button>
          )}
          {may("jobs:write") && (
            <Button kind="danger" onClick={() => void act("purge", filter)}>
              Purge all that fit
            </Button>
          )}
        </>
      }
    >
      <Views page="/dead-letters" />
      <Filters fixed={{ state: "failed" }} />
      <JobList filter={filter} />
    </Page>
  );
}

export async function act(action: "retry" | "purge", filter: JobFilter): Promise<void> {
  const { state: _, ...wanted } = filter;
  const words = described(wanted);
  const which = words ? `All failed jobs with ${words}` : "All failed jobs of all queues";
  const isPurge = action === "purge";
  const isSure = await confirm({
    title: isPurge ? "Purge dead letters?" : "Retry dead letters?",
    text: isPurge ? `${which} are removed for good. This cannot be undone.` : `${which} wait again, each with its attempts anew.`,
    verb: isPurge ? "Purge" : "Retry",
    isDangerous: isPurge,
  });
  if (!isSure) return;
  try {
    const { done, passed_over: passed } = await actOnDeadLetters(action, wanted);
    const detail = passed ? { detail: `${plural(passed, "job")} passed over: someone was quicker, or it is in use` } : {};
    say(isPurge ? `${plural(done, "job")} purged` : `${plural(done, "job")} will run again`, detail);
  } catch (error) {
    sayProblem(error, isPurge ? "Purging" : "Retrying");
  }
}
