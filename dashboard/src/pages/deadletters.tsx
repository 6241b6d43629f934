// Jobs that failed for good, and what to do with all of them that fit.
import { actOnDeadLetters, list, type DeadLettersDone, type JobFilter } from "../api/jobs";
import { plural } from "../format";
import { described, filterHere, Filters } from "../jobs/filters";
import { JobList } from "../jobs/list";
import { Views } from "../jobs/views";
import { say, sayProblem, sayProgress } from "../state/toasts";
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
  const number = await howMany(wanted).catch(() => "how many could not be asked");
  const isSure = await confirm({
    title: isPurge ? "Purge dead letters?" : "Retry dead letters?",
    text: `${which} (${number}) ${isPurge ? "are removed for good. This cannot be undone." : "wait again, each with its attempts anew."}`,
    verb: isPurge ? "Purge" : "Retry",
    isDangerous: isPurge,
  });
  if (!isSure) return;
  await goThrough(action, wanted);
}

/** No more than one page of a list is asked for. */
const COUNTED = 500;

async function howMany(filter: JobFilter): Promise<string> {
  const { items, next_cursor } = await list({ ...filter, state: "failed" }, null, COUNTED);
  return next_cursor === null ? plural(items.length, "job") : `more than ${plural(items.length, "job")}`;
}

/** Until nothing is left or somebody stops it; what is done so far is said all the while. */
async function goThrough(action: "retry" | "purge", filter: JobFilter): Promise<void> {
  const inWords = (done: number): string => (action === "purge" ? `${plural(done, "job")} purged` : `${plural(done, "job")} will run again`);
  const progress = sayProgress(action === "purge" ? "Purging…" : "Retrying…");
  let sum: DeadLettersDone = { done: 0, passed_over: 0, next_cursor: null };
  try {
    for await (sum of actOnDeadLetters(action, filter)) {
      if (sum.next_cursor === null || progress.isStopped()) break;
      progress.tell(`${inWords(sum.done)} so far…`);
    }
    const passed = sum.passed_over && `${plural(sum.passed_over, "job")} passed over: someone was quicker, or it is in use`;
    const detail = [sum.next_cursor && "stopped; the others are as they were", passed].filter(Boolean).join(" · ");
    say(inWords(sum.done), detail ? { detail } : {});
  } catch (error) {
    sayProblem(error, action === "purge" ? "Purging" : "Retrying");
    if (sum.done) say(inWords(sum.done), { tone: "plain", detail: "before that; the others are as they were" });
  } finally {
    progress.end();
  }
}
