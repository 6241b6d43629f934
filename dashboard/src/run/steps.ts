// The journal of a task, and which of its steps belongs to which call.
import type { TaskStep, ToolCall } from "../api/runs";

export interface WholeCall {
  /** In which order the model asked for it. */
  at: number;
  call: ToolCall;
  step: TaskStep | undefined;
}

/** All that calls of tools were given and answered; the log has only the beginning of it. */
export function callsOf(steps: TaskStep[]): Map<string, WholeCall> {
  const answers = new Map(steps.flatMap((step) => (step.call_id === null ? [] : [[step.call_id, step] as const])));
  const calls = steps.flatMap((step) => step.calls ?? []);
  return new Map(calls.map((call, at) => [call.id, { at, call, step: answers.get(call.id) }]));
}

/** Those that have something to show, in order: what one steps through. */
export function shownSteps(steps: TaskStep[]): TaskStep[] {
  return steps.filter((step) => (step.what === "llm" || step.what === "tool") && step.state === "done").toSorted((one, other) => one.place - other.place);
}
