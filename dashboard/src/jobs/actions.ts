// What can be done to jobs, one or many: questions before it, words after it, and undo where there is one.
import { signal } from "@preact/signals";
import * as jobs from "../api/jobs";
import type { JobRef, Outcome, State } from "../api/wire";
import { plural } from "../format";
import { doUnlessUndone, say, sayProblem } from "../state/toasts";
import { confirm } from "../ui/dialog";
import { may } from "../state/session";

const ALLOWED: Record<jobs.JobAction, { states: readonly State[]; needs: string }> = {
  retry: { states: ["failed", "completed"], needs: "jobs:retry" },
  promote: { states: ["delayed"], needs: "jobs:write" },
  cancel: { states: ["waiting", "prioritized", "delayed", "active", "waiting-children"], needs: "jobs:cancel" },
  remove: { states: ["waiting", "prioritized", "delayed", "waiting-children", "completed", "failed"], needs: "jobs:write" },
};

const WORDS: Record<jobs.JobAction, { verb: string; done: string }> = {
  retry: { verb: "Retry", done: "will run again" },
  promote: { verb: "Promote", done: "may run now" },
  cancel: { verb: "Cancel", done: "cancelled or told to stop" },
  remove: { verb: "Remove", done: "removed" },
};

/** The server takes no more at once. */
const AT_ONCE = 500;

export function keyOf({ queue, id }: JobRef): string {
  return `${queue}/${id}`;
}

/** Jobs that are about to be removed: lists leave them out, unless it is undone. */
export const leaving = signal<ReadonlySet<string>>(new Set());

export function isAllowed(action: jobs.JobAction, state: State): boolean {
  const { states, needs } = ALLOWED[action];
  return states.includes(state) && may(needs);
}

export function verbOf(action: jobs.JobAction): string {
  return WORDS[action].verb;
}

type WithState = JobRef & { state: State };

/** Do it to those of the jobs that it can be done to; `then` is called when the server has answered. */
export async function perform(action: jobs.JobAction, chosen: WithState[], then: () => void): Promise<void> {
  const fitting = chosen.filter((job) => isAllowed(action, job.state));
  const { verb } = WORDS[action];
  if (fitting.length === 0) {
    say(`Nothing to ${verb.toLowerCase()} here`, { tone: "plain", detail: "The state of these jobs does not allow it." });
    return;
  }
  const isBold = fitting.length > 1 || action === "cancel";
  if (action !== "remove" && isBold && !(await isSure(action, fitting))) return;
  if (action === "remove") removeSoon(fitting, then);
  else await send(action, fitting).then(then);
}

function isSure(action: jobs.JobAction, chosen: WithState[]): Promise<boolean> {
  const { verb } = WORDS[action];
  return confirm({
    title: `${verb} ${plural(chosen.length, "job")}?`,
    text:
      action === "cancel"
        ? "Those that wait fail at once; those that run are told to stop, and their steps so far stay done."
        : action === "retry"
          ? "They wait again, each with its attempts anew. Steps that were recorded are not done twice."
          : "They may run at once, whatever their delay was.",
    // Beside a button that says Cancel, another one that says so would be a trap.
    verb: action === "cancel" ? "Stop it" : verb,
    isDangerous: action === "cancel",
  });
}

function removeSoon(chosen: WithState[], then: () => void): void {
  const keys = chosen.map(keyOf);
  leaving.value = new Set([...leaving.value, ...keys]);
  const comeBack = (): void => {
    leaving.value = new Set([...leaving.value].filter((key) => !keys.includes(key)));
  };
  doUnlessUndone(
    `${plural(chosen.length, "job")} removed`,
    () => {
      void send("remove", chosen, true).then(() => {
        then();
        // A list that was asked for before the removal may still bring them.
        setTimeout(comeBack, 3_000);
      });
    },
    comeBack,
  );
}

async function send(action: jobs.JobAction, chosen: WithState[], isQuiet = false): Promise<void> {
  const { verb, done } = WORDS[action];
  try {
    const outcomes: Outcome[] = [];
    for (let at = 0; at < chosen.length; at += AT_ONCE) {
      outcomes.push(...(await jobs.actOnMany(action, chosen.slice(at, at + AT_ONCE))).items);
    }
    const refused = outcomes.filter(isRefused);
    const good = chosen.length - refused.length;
    if (refused.length > 0) {
      const reasons = [...new Set(refused.map((one) => one.outcome))].join(", ");
      say(`${plural(refused.length, "job")} refused`, { tone: "bad", detail: `${reasons} · ${plural(good, "job")} ${done}` });
    } else if (!isQuiet) say(`${plural(good, "job")} ${done}`);
  } catch (error) {
    sayProblem(error, verb);
  }
}

function isRefused({ outcome }: Outcome): boolean {
  return outcome !== "done";
}
