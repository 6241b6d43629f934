// What a run may use at most, as fields of a form.
import type { RunLimits } from "../api/runs";
import { Field, Folded, type FormValues } from "../ui/form";

interface Limit {
  name: keyof RunLimits;
  label: string;
  hint: string;
  min: number;
}

const LIMITS: readonly Limit[] = [
  { name: "max_credits", label: "Most credits", hint: "empty: twice what it is expected to cost", min: 1 },
  { name: "max_steps", label: "Most steps", hint: "empty: 50", min: 1 },
  { name: "max_tool_calls", label: "Most tool calls", hint: "empty: 100; 0: none", min: 0 },
  { name: "max_total_tokens", label: "Most tokens in all", hint: "empty: no limit but its credits", min: 1 },
  { name: "max_tokens", label: "Most tokens of one answer", hint: "empty: 4,096, or what the model can write", min: 1 },
  { name: "timeout", label: "Most seconds of work", hint: "empty: as its kind has it", min: 1 },
];

export function LimitFields() {
  return (
    <Folded title="Limits">
      <div class="form-row">
        {LIMITS.map(({ name, label, hint, min }) => (
          <Field key={name} label={label} name={name} type="number" min={min} hint={hint} />
        ))}
      </div>
    </Folded>
  );
}

/** Those that were set. */
export function limitsFrom(values: FormValues): RunLimits {
  const set = LIMITS.map(({ name }) => [name, values.number(name)] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== null));
}
