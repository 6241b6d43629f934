// How a task ended: its answer, or why there is none.
import type { RunTask } from "../api/runs";
import { Copy } from "../ui/copy";
import { Card } from "../ui/page";
import { Words } from "./words";

const STOPS: Record<string, string> = {
  max_steps: "It made all the steps that it may. Fork it from its last step to go on.",
  max_tool_calls: "It made all the tool calls that it may. Fork it from its last step to go on.",
  max_tokens: "Its answer was cut off, or it used all the tokens that it may. Fork it from its last step to go on.",
  credits: "The next call could have cost more than is left. Deposit credits, and fork it from its last step with more.",
  timeout: "It worked for as long as it may. Fork it from its last step to go on.",
};

export function OutcomeCard({ task }: { task: RunTask }) {
  const { result } = task;
  if (result === null) return null;
  const isGood = result.error === null;
  const stop = STOPS[result.stop_reason];
  return (
    <Card
      title={isGood ? "Answer" : "Why it has no answer"}
      aside={isGood ? result.output && <Copy text={result.output} label="Copy the answer" /> : result.error && <code>{result.error.code}</code>}
    >
      {result.error && <p class="failure-message">{result.error.message}</p>}
      {stop && <p class="muted">{stop}</p>}
      {result.output && (
        <>
          {!isGood && <h3>Its last words</h3>}
          <Words text={result.output} />
        </>
      )}
      {isGood && !result.output && <p class="muted">The model said nothing at the end.</p>}
    </Card>
  );
}
