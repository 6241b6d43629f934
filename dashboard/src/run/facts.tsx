import type { ComponentChildren } from "preact";
import { comparePage, jobPage, runPage, runsPage, taskPage } from "../addresses";
import { task as taskOf, type Run, type RunTask } from "../api/runs";
import { credits, NONE } from "../format";
import { firstWords } from "../runs/columns";
import { useLoad } from "../state/load";
import { Copy } from "../ui/copy";
import { Card } from "../ui/page";
import { Ago, Moment } from "../ui/time";

type Fact = [name: string, value: ComponentChildren];

export function RunFacts({ run, task }: { run: Run; task: RunTask }) {
  const parent = run.tasks.find(({ task_id }) => task_id === task.parent);
  const facts: (Fact | false)[] = [
    ["Run", <span class="copied"><code>{run.run_id}</code><Copy text={run.run_id} label="Copy the run's id" /></span>],
    ["Tenant", run.tenant],
    run.workspace !== null && ["Workspace", <a href={runsPage({ tenant: run.tenant, workspace: run.workspace })}>{run.workspace}</a>],
    ["Asked by", run.created_by || NONE],
    ["Asked", <><Moment ms={run.created_ms} /> <span class="muted"><Ago ms={run.created_ms} /></span></>],
    parent !== undefined && ["Part of", <a href={taskPage(run.run_id, parent.task_id)}>{firstWords(parent.prompt, 60)}</a>],
    ["Kind", task.task_type.replaceAll("_", " ")],
    ["Model", task.model],
    ["Job", <a href={jobPage({ queue: task.queue, id: task.task_id })} title={task.task_id}>in {task.queue}</a>],
    ["May cost", `${credits(task.budget.most)} credits at most`],
    task.budget.held > 0 && ["Held now", `${credits(task.budget.held)} credits for calls under way`],
    task.is_dry && ["Dry", "its tools are not called: recorded results answer for them"],
    task.forked_from !== null && ["Forked from", <Origin taskId={task.forked_from} runId={run.run_id} />],
  ];
  return (
    <Card title="Facts">
      <dl class="facts">
        {facts
          .filter((fact) => fact !== false)
          .map(([name, value]) => (
            <>
              <dt key={name}>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
      </dl>
    </Card>
  );
}

/** The task is known, and its run is asked for. */
function Origin({ taskId, runId }: { taskId: string; runId: string }) {
  const { data } = useLoad(`task ${taskId}`, (abort) => taskOf(taskId, abort));
  if (!data) return <code>{taskId}</code>;
  return (
    <>
      <a href={runPage(data.run_id)}>{firstWords(data.prompt, 60)}</a> · <a href={comparePage(data.run_id, runId)}>Compare</a>
    </>
  );
}
