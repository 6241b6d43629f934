// The seven states of a job: one name, one colour, everywhere.
import { STATES, type Counts, type State } from "../api/wire";
import { count } from "../format";

const NAMES: Record<State, string> = {
  waiting: "Waiting",
  prioritized: "Prioritized",
  delayed: "Delayed",
  active: "Active",
  "waiting-children": "Waiting for children",
  completed: "Completed",
  failed: "Failed",
};

export function stateName(state: string): string {
  return NAMES[state as State] ?? state;
}

export function countOf(counts: Partial<Counts>, state: State): number {
  return counts[state.replace("-", "_") as keyof Counts] ?? 0;
}

/** All that could run now, with a priority or without. */
export function ready(counts: Partial<Counts>): number {
  return countOf(counts, "waiting") + countOf(counts, "prioritized");
}

export function StateBadge({ state }: { state: string }) {
  return (
    <span class={`badge state-${state}`}>
      <i class="dot" />
      {stateName(state)}
    </span>
  );
}

const BARRED: State[] = ["active", "prioritized", "waiting", "waiting-children", "delayed", "failed"];

/** What a queue holds, as one bar: only what is not yet done, or failed. */
export function StateBar({ counts }: { counts: Partial<Counts> }) {
  const parts = BARRED.map((state) => ({ state, jobs: countOf(counts, state) })).filter((part) => part.jobs > 0);
  const all = parts.reduce((sum, part) => sum + part.jobs, 0);
  const label = parts.map((part) => `${count(part.jobs)} ${stateName(part.state).toLowerCase()}`).join(", ");
  let x = 0;
  return (
    <svg class="state-bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label || "empty"}>
      <title>{label || "empty"}</title>
      <rect class="state-bar-ground" width="100" height="6" />
      {parts.map((part) => {
        const width = (part.jobs / all) * 100;
        const left = x;
        x += width;
        return <rect key={part.state} class={`fill-${part.state}`} x={left} width={Math.max(width - 0.6, 0.8)} height="6" />;
      })}
    </svg>
  );
}

export const ALL_STATES: readonly State[] = STATES;
