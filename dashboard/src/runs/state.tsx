// The states of runs and their tasks, in the colours that jobs have.
import type { RunState } from "../api/runs";

const STATES: Record<RunState, [name: string, tone: string]> = {
  pending: ["Pending", "waiting"],
  queued: ["Queued", "waiting"],
  running: ["Running", "active"],
  retrying: ["Retrying", "delayed"],
  suspended: ["Needs an answer", "prioritized"],
  completed: ["Completed", "completed"],
  failed: ["Failed", "failed"],
  cancelled: ["Cancelled", "waiting"],
  timeout: ["Out of time", "failed"],
};

/** What is set aside waits for a person, or for other agents. */
export function runStateName(state: RunState, isAsking = true): string {
  if (state === "suspended" && !isAsking) return "Waits for agents";
  return STATES[state]?.[0] ?? state;
}

export function toneOfRun(state: RunState): string {
  return STATES[state]?.[1] ?? "waiting";
}

export function RunBadge({ state, isAsking = true }: { state: RunState; isAsking?: boolean }) {
  return (
    <span class={`badge state-${toneOfRun(state)}`}>
      <i class="dot" />
      {runStateName(state, isAsking)}
    </span>
  );
}
