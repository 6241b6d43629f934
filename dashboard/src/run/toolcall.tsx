// One call of a tool: what it was given and what it answered, folded away unless something went wrong.
import { duration } from "../format";
import { nowMs } from "../state/clock";
import type { WholeCall } from "./steps";
import type { ToolUse } from "./story";
import { Payload } from "./words";

const STATES: Record<ToolUse["state"], [name: string, tone: string]> = {
  running: ["running", "active"],
  done: ["done", "completed"],
  failed: ["failed", "failed"],
  stopped: ["stopped before its end", "waiting"],
  lost: ["lost with its worker", "delayed"],
};

export function ToolCallView({ use, whole }: { use: ToolUse; whole: WholeCall | undefined }) {
  const [name, tone] = STATES[use.state];
  const input = whole?.call.arguments ?? use.input;
  const output = use.output === null ? null : (whole?.step?.text ?? use.output);
  return (
    <details class={`tool tone-${tone}`} open={use.state === "failed"}>
      <summary>
        <i class="dot" />
        <b>{use.name}</b>
        <code class="tool-glance">{input}</code>
        <span class="tool-state">
          {use.starts > 1 && `${use.starts} tries · `}
          {use.state === "done" ? duration(use.tookMs) : name}
          {use.state === "running" && ` ${duration(Math.max(0, nowMs.value - use.startedMs))}`}
        </span>
      </summary>
      <div class="tool-body">
        <h3>Input</h3>
        <Payload text={input} label="input" />
        {output !== null && (
          <>
            <h3 class={use.state === "failed" ? "is-bad" : ""}>{use.state === "failed" ? "Error" : "Output"}</h3>
            <Payload text={output} label="output" />
          </>
        )}
      </div>
    </details>
  );
}
