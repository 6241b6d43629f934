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

export function runStateName(state: RunState): string {
  return STATES[state]?.[0] ?? state;
}

export function toneOfRun(state: RunState): string {
  return STATES[state]?.[1] ?? "waiting";
}

export function RunBadge({ state }: { state: RunState }) {
  return (
    <span class={`badge state-${toneOfRun(state)}`}>
      <i class="dot" />
      {runStateName(state)}
    </span>
  );
}
