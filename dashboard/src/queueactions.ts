// What can be done to a whole queue, with the questions that go before it.
import { act, type QueueAction } from "./api/queues";
import { STATES, type Queue, type State } from "./api/wire";
import { plural } from "./format";
import { reloadOverview, showPaused } from "./live/overview";
import { attempt } from "./state/toasts";
import { confirm } from "./ui/dialog";
import { countOf } from "./ui/state";

export async function setPaused(name: string, paused: boolean, isUndo = false): Promise<void> {
  showPaused(name, paused);
  const done = paused ? `${name} is paused: running jobs go on, no new one starts` : `${name} runs again`;
  const undo = isUndo ? undefined : () => void setPaused(name, !paused, true);
  const doing = paused ? `Pausing ${name}` : `Resuming ${name}`;
  await attempt(doing, done, () => act(name, paused ? "pause" : "resume"), undo);
  void reloadOverview();
}

interface Plan {
  name: string;
  action: QueueAction;
  /** Which jobs it is about. */
  states: readonly State[];
  body?: object;
  isDangerous?: boolean;
  text: string;
  verb: string;
  done: string;
  mustType?: boolean;
}

export const PLANS: Plan[] = [
  {
    name: "Retry all failed jobs…",
    action: "retry-all",
    states: ["failed"],
    text: "All failed jobs of the queue wait again, each with its attempts anew.",
    verb: "Retry all",
    done: "Failed jobs wait again",
  },
  {
    name: "Promote all delayed jobs…",
    action: "promote-all",
    states: ["delayed"],
    text: "All delayed jobs may run at once, also those that wait for a retry. Parked jobs go on waiting.",
    verb: "Promote all",
    done: "Delayed jobs may run now",
  },
  {
    name: "Clean completed jobs…",
    action: "clean",
    states: ["completed"],
    body: { state: "completed" },
    isDangerous: true,
    text: "Completed jobs are removed with their results and logs. This cannot be undone.",
    verb: "Remove completed",
    done: "Completed jobs are removed",
  },
  {
    name: "Drain…",
    action: "drain",
    states: ["waiting", "prioritized"],
    isDangerous: true,
    text: "All jobs that wait are removed. Running, delayed and finished jobs stay. This cannot be undone.",
    verb: "Drain",
    done: "Waiting jobs are removed",
  },
  {
    name: "Obliterate…",
    action: "obliterate",
    states: STATES,
    body: { force: true },
    isDangerous: true,
    text: "The queue goes away with every job in it, running ones too. This cannot be undone.",
    verb: "Obliterate",
    done: "The queue is gone",
    mustType: true,
  },
];

export async function carryOut({ name: queue, counts }: Queue, plan: Plan): Promise<boolean> {
  const jobs = plan.states.reduce((sum, state) => sum + countOf(counts, state), 0);
  const isSure = await confirm({
    title: `${plan.verb}: ${queue}`,
    text: `${plan.text} At the last count: ${plural(jobs, "job")}.`,
    verb: plan.verb,
    isDangerous: plan.isDangerous ?? false,
    ...(plan.mustType ? { typed: queue } : {}),
  });
  if (!isSure) return false;
  const isDone = await attempt(plan.verb, `${queue}: ${plan.done}`, () => act(queue, plan.action, plan.body ?? {}));
  void reloadOverview();
  return isDone;
}
