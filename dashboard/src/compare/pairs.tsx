// What both runs have at a place, side by side.
import type { StepPair, TaskStep } from "../api/runs";
import { Output, Reply } from "../run/words";

const WORDS: Record<string, string> = {
  name: "another step",
  text: "other words",
  calls: "other calls",
  is_error: "one failed",
  state: "one is not done",
  status: "another end",
  stop_reason: "another reason",
  error: "another error",
  missing: "only one has it",
};

export function PairList({ pairs }: { pairs: StepPair[] }) {
  return (
    <ol class="pairs" aria-label="Steps side by side">
      {pairs.map((pair) => (
        <li key={pair.place} class={pair.differs.length > 0 ? "pair is-otherwise" : "pair"}>
          <div class="pair-head">
            <b>{nameOf(pair)}</b>
            <small>place {pair.place}</small>
            {pair.differs.map((word) => (
              <span key={word} class="badge tone-odd">
                {WORDS[word] ?? word}
              </span>
            ))}
          </div>
          {pair.differs.length > 0 ? (
            <>
              <Half label="One" step={pair.one} />
              <Half label="Other" step={pair.other} />
            </>
          ) : (
            <Half label="Both" step={pair.one} />
          )}
        </li>
      ))}
    </ol>
  );
}

function nameOf({ one, other }: StepPair): string {
  const step = one ?? other;
  if (step?.what === "llm") return "Model";
  if (step?.what === "end") return "End";
  if (step?.what === "fan_out") return "Agents sent out";
  return step?.what === "answer" ? "Answer of a person" : `Tool ${step?.name ?? ""}`;
}

function Half({ label, step }: { label: string; step: TaskStep | null }) {
  return (
    <div class="pair-half">
      <small class="pair-side">{label}</small>
      {step === null ? <span class="muted">nothing here</span> : <Said step={step} />}
    </div>
  );
}

function Said({ step }: { step: TaskStep }) {
  if (step.state !== "done") return <span class="muted">{step.name} is {step.state}</span>;
  return step.what === "tool" ? <Output step={step} /> : <Reply step={step} />;
}
