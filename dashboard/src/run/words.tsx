// Texts of models and tools: long ones are cut until one asks for all.
import { useState } from "preact/hooks";
import { Button } from "../ui/button";
import { Copy } from "../ui/copy";
import { JsonView } from "../ui/json";
import type { TaskStep } from "../api/runs";
import type { Json } from "../api/wire";

const LONGEST = 4_000;

export function Words({ text, isLive = false }: { text: string; isLive?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const isCut = text.length > LONGEST && !isWhole && !isLive;
  return (
    <div class="words">
      <p class={isLive ? "words-text is-live" : "words-text"}>{isCut ? `${text.slice(0, LONGEST)}…` : text}</p>
      {isCut && (
        <Button isSmall onClick={() => setWhole(true)}>
          Show all {Math.round(text.length / 1024)} KiB
        </Button>
      )}
    </div>
  );
}

/** JSON with its colours where it is one; anything else as it is. */
export function Payload({ text, label }: { text: string; label: string }) {
  const parsed = jsonIn(text);
  if (parsed !== undefined) return <JsonView value={parsed} />;
  return (
    <div class="code-box">
      <Copy text={text} label={`Copy the ${label}`} />
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

/** What a model answered: its words, and the calls that it asks for. */
export function Reply({ step }: { step: TaskStep }) {
  return (
    <>
      {step.text && <Words text={step.text} />}
      {(step.calls ?? []).map((call) => (
        <div key={call.id} class="turn-call">
          <span class="muted">calls</span> <b>{call.name}</b>
          <Payload text={call.arguments} label={`input of ${call.name}`} />
        </div>
      ))}
    </>
  );
}

/** What came of a call of a tool. */
export function Output({ step }: { step: TaskStep }) {
  return <Payload text={step.text ?? ""} label={`output of ${step.name}`} />;
}

function jsonIn(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
