// What had been said up to a step, as the model read it.
import type { ComponentChildren } from "preact";
import type { RunTask, TaskStep } from "../api/runs";
import { count, duration } from "../format";
import { callsOf } from "../run/steps";
import { Output, Reply, Words } from "../run/words";
import { useEffect, useRef } from "preact/hooks";

interface ConversationProps {
  task: RunTask;
  steps: TaskStep[];
  /** How many of the steps are shown; the last of them is the one looked at. */
  shown: number;
  onPick: (shown: number) => void;
}

export function Conversation({ task, steps, shown, onPick }: ConversationProps) {
  const calls = callsOf(steps);
  return (
    <ol class="conversation" aria-label="The conversation up to this step">
      {task.system && <Turn who="System"><Words text={task.system} /></Turn>}
      <Turn who="Prompt" isCurrent={shown === 0}>
        <Words text={task.prompt} />
      </Turn>
      {steps.slice(0, shown).map((step, at) => (
        <StepTurn key={step.place} step={step} given={calls.get(step.call_id ?? "")?.call.arguments} isCurrent={at === shown - 1} onPick={() => onPick(at + 1)} />
      ))}
    </ol>
  );
}

interface StepTurnProps {
  step: TaskStep;
  /** What the tool was given: a model may call the same one several times at once. */
  given: string | undefined;
  isCurrent: boolean;
  onPick: () => void;
}

function StepTurn({ step, given, isCurrent, onPick }: StepTurnProps) {
  const took = duration(Math.max(0, step.ended_ms - step.started_ms));
  if (step.what === "llm") {
    const tokens = (step.usage?.input_tokens ?? 0) + (step.usage?.output_tokens ?? 0);
    return (
      <Turn who="Model" note={`${step.model ?? step.name} · ${count(tokens)} tokens · ${took}`} isCurrent={isCurrent} onPick={onPick}>
        <Reply step={step} />
      </Turn>
    );
  }
  return (
    <Turn who="Tool" note={`${step.name} · ${took}${step.attempts > 1 ? ` · ${step.attempts} tries` : ""}`} isCurrent={isCurrent} isBad={step.is_error === true} onPick={onPick}>
      {given && <code class="turn-given">{given}</code>}
      <Output step={step} />
    </Turn>
  );
}

interface TurnProps {
  who: string;
  note?: string;
  isCurrent?: boolean;
  isBad?: boolean;
  onPick?: () => void;
  children: ComponentChildren;
}

function Turn({ who, note = "", isCurrent = false, isBad = false, onPick, children }: TurnProps) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isCurrent) row.current?.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);
  const names = ["turn", `turn-${who.toLowerCase()}`, isCurrent ? "is-current" : "", isBad ? "is-error" : ""];
  return (
    <li ref={row} class={names.filter(Boolean).join(" ")} aria-current={isCurrent ? "step" : undefined}>
      <div class="turn-who">
        {onPick && !isCurrent ? (
          <button type="button" class="turn-pick" title="Go to this step" onClick={onPick}>
            {who}
          </button>
        ) : (
          <b>{who}</b>
        )}
        {note && <small>{note}</small>}
        {isBad && <span class="badge tone-bad">error</span>}
      </div>
      <div class="turn-words">{children}</div>
    </li>
  );
}
