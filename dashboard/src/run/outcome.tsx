// How a task ended: its answer, or why there is none.
import type { RunTask } from "../api/runs";
import { Copy } from "../ui/copy";
import { Card } from "../ui/page";
import { Words } from "./words";

/** A fork keeps the limits of its run, and what was done before it counts; but it pays only for its own steps. */
const STOPS: Record<string, string> = {
  max_steps: "It made all the steps that it may, and so would a fork. Submit it again with a higher max_steps.",
  max_tool_calls: "It made all the tool calls that it may, and so would a fork. Submit it again with a higher max_tool_calls.",
  max_tokens: "Its answer was cut off, or it used all the tokens that it may, and so would a fork. Submit it again with a higher max_tokens or max_total_tokens.",
  credits: "The next call could have cost more than was left of what it may cost, or of the account. Deposit credits if the account has too few; a fork from its last step may cost as much anew.",
  timeout: "It worked for as long as it may, and so would a fork. Submit it again with a longer timeout.",
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
