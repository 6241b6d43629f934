// What it has cost of what it may, how much was read and written, and for how long it works.
import { isOver, type Run, type RunTask } from "../api/runs";
import { count, credits, duration, NONE } from "../format";
import { nowMs } from "../state/clock";
import { Figure } from "../ui/page";
import type { Story } from "./story";

interface MeterProps {
  run: Run;
  stories: ReadonlyMap<string, Story>;
  /** Not all of the log is here: it does not yet say how many calls there were. */
  isReading: boolean;
}

export function Meter({ run, stories, isReading }: MeterProps) {
  const spent = sum(run.tasks.map((task) => spentOn(task, stories.get(task.task_id))));
  const most = sum(run.tasks.map((task) => task.budget.most));
  const tokens = sum(run.tasks.map((task) => task.result?.tokens_used.total_tokens ?? stories.get(task.task_id)?.tokens ?? 0));
  const tools = sum(run.tasks.map((task) => toolsOf(stories.get(task.task_id))));
  return (
    <div class="figures">
      <div class="figure figure-wide">
        <span class="figure-label">Credits spent</span>
        <span class="figure-value">
          {credits(spent)} <small>of {most ? credits(most) : NONE}</small>
        </span>
        {/* A run that costs nothing at all has no bar to fill. */}
        {most > 0 && <meter class={isNear(spent, most) ? "is-near" : ""} max={most} value={Math.min(spent, most)} aria-label="Credits spent of the most it may cost" />}
      </div>
      <Figure label="Tokens" value={count(tokens)} />
      <Figure label="Tool calls" value={isReading ? NONE : count(tools)} />
      <Figure label={isOver(run.state) ? "Took" : "Since it began"} value={tookOf(run)} />
    </div>
  );
}

function spentOn(task: RunTask, story: Story | undefined): number {
  if (task.result) return task.result.credits_charged;
  return Math.max(task.budget.spent, story?.spent ?? 0);
}

function toolsOf(story: Story | undefined): number {
  return sum((story?.chapters ?? []).map((chapter) => (chapter.kind === "model" ? chapter.tools.length : 0)));
}

function tookOf(run: Run): string {
  const starts = run.tasks.flatMap((task) => (task.started_ms === null ? [] : [task.started_ms]));
  if (starts.length === 0) return NONE;
  return duration(Math.max(0, (run.finished_ms ?? nowMs.value) - Math.min(...starts)));
}

function isNear(spent: number, most: number): boolean {
  return spent > 0.8 * most;
}

function sum(numbers: number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
