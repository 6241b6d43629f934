// The two runs, in figures and in what they came to.
import { replayPage, runPage } from "../addresses";
import type { CompareSide, Comparison } from "../api/runs";
import { credits, duration, NONE } from "../format";
import { Words } from "../run/words";
import { RunBadge } from "../runs/state";
import { Card } from "../ui/page";

export function Sides({ found }: { found: Comparison }) {
  return (
    <div class="sides">
      <OneSide title="One" side={found.one} other={found.other} asked={found.differs} />
      <OneSide title="Other" side={found.other} other={found.one} asked={found.differs} />
    </div>
  );
}

interface OneSideProps {
  title: string;
  side: CompareSide;
  other: CompareSide;
  /** Which parts of what was asked differ. */
  asked: string[];
}

function OneSide({ title, side, other, asked }: OneSideProps) {
  const end = side.result;
  const isOtherwise = end?.output !== other.result?.output;
  return (
    <Card title={title} aside={<RunBadge state={side.state} />}>
      <dl class="facts">
        <dt>Run</dt>
        <dd>
          <a href={runPage(side.run_id)}>
            <code>{side.run_id}</code>
          </a>{" "}
          {side.forked_from === other.task_id && <span class="muted">fork of the {title === "One" ? "other" : "one"}</span>}
        </dd>
        {asked.includes("prompt") && <Fact name="Prompt" value={side.prompt} />}
        {asked.includes("model") && <Fact name="Model" value={side.model} />}
        <dt>Steps</dt>
        <dd>
          <a href={replayPage(side.run_id)}>{side.steps}</a>
        </dd>
        <Fact name="Credits" value={credits(side.spent)} />
        <Fact name="Took" value={end ? duration(end.duration_ms) : NONE} />
        <dt>Answer</dt>
        <dd class={isOtherwise ? "side-answer is-otherwise" : "side-answer"}>{end ? <Words text={end.error?.user_facing_message ?? end.output} /> : <span class="muted">it is not over</span>}</dd>
      </dl>
    </Card>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
