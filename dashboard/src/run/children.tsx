// The agents that a task of wide research has working for it, and how each stands; each of them shows the others too.
import { taskPage } from "../addresses";
import { isOver, type Run, type RunTask } from "../api/runs";
import { credits } from "../format";
import { firstWords } from "../runs/columns";
import { RunBadge } from "../runs/state";
import { Card } from "../ui/page";

export function Children({ run, task }: { run: Run; task: RunTask }) {
  const whole = task.parent ?? task.task_id;
  const children = run.tasks.filter(({ parent }) => parent === whole);
  if (children.length === 0) return null;
  const over = children.filter(({ state }) => isOver(state)).length;
  return (
    <Card title="Agents" aside={`${over} of ${children.length} are done`}>
      <ul class="agents">
        {children.map((child) => (
          <li key={child.task_id}>
            <RunBadge state={child.state} isAsking={child.question !== null} />
            <a href={taskPage(run.run_id, child.task_id)} aria-current={child === task ? "true" : undefined}>{questionOf(child)}</a>
            <span class="muted">{credits(child.budget.spent)} credits</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Its first paragraph: what the research as a whole is about stands below. */
export function questionOf(task: RunTask): string {
  return firstWords(task.parent === null ? task.prompt : (task.prompt.split("\n\n")[0] ?? ""));
}
