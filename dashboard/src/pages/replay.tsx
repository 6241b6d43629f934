// A run step by step, as it was: the address holds the step, so that a place in it can be shared.
import { useEffect, useState } from "preact/hooks";
import { comparePage, replayPage, runPage } from "../addresses";
import * as runs from "../api/runs";
import type { Run, RunTask } from "../api/runs";
import { useLiveReload } from "../live/live";
import { Conversation } from "../replay/conversation";
import { ForkDialog } from "../replay/fork";
import { Scrubber } from "../replay/scrubber";
import { navigate, place, setQuery } from "../router";
import { questionOf } from "../run/children";
import { shownSteps } from "../run/steps";
import { firstWords } from "../runs/columns";
import { RunBadge, runStateName, toneOfRun } from "../runs/state";
import { useJournal } from "../state/journal";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { useShortcuts } from "../state/shortcuts";
import { Button } from "../ui/button";
import { Empty } from "../ui/notes";
import { Card, Page } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { View } from "../ui/view";
import { taskHere } from "./run";

export function ReplayPage({ id }: { id: string }) {
  const load = useLoad(`run ${id}`, (abort) => runs.one(id, abort));
  const run = load.data;
  useLiveReload(() => run && !runs.isOver(run.state) && load.reload(), { everyMs: 1_500 });
  const first = run?.tasks[0];
  return (
    <Page
      title={first ? firstWords(first.prompt, 60) : id}
      trail={
        <>
          <a href="/runs">Runs</a>
          <a href={runPage(id)}>
            <code>{id}</code>
          </a>
          <span>Replay</span>
        </>
      }
      badge={run && <RunBadge state={run.state} isAsking={run.tasks.some(({ question }) => question !== null)} />}
      actions={
        <>
          {first?.forked_from && <CompareButton taskId={first.forked_from} runId={id} />}
          <Button onClick={() => navigate(runPage(id))}>Back to the run</Button>
        </>
      }
    >
      <View of={load} lines={10}>
        {(found) => {
          const task = taskHere(found);
          return task && <Replay key={task.task_id} run={found} task={task} />;
        }}
      </View>
    </Page>
  );
}

/** Beside the run that this one was forked from. */
function CompareButton({ taskId, runId }: { taskId: string; runId: string }) {
  const { data } = useLoad(`task ${taskId}`, (abort) => runs.task(taskId, abort));
  return data ? <Button onClick={() => navigate(comparePage(data.run_id, runId))}>Compare</Button> : null;
}

function Replay({ run, task }: { run: Run; task: RunTask }) {
  const [isForking, setForking] = useState(false);
  const load = useJournal(`steps ${task.task_id}`, (start, abort) => runs.steps(task.task_id, start, abort));
  const { reload } = load;
  useEffect(reload, [run, reload]);
  const steps = shownSteps(load.data ?? []);
  const shown = placeHere(steps.length);
  const mayFork = may("tasks:add");
  // The browser's back leaves the page, and does not go through each step.
  const move = (to: number): void => navigate(replayPage(run.run_id, { ...(run.tasks.length > 1 ? { task: task.task_id } : {}), at: String(to) }), { replace: true });
  useShortcuts(mayFork ? { f: () => setForking(true) } : {});
  return (
    <>
      {run.tasks.length > 1 && <TaskTabs run={run} current={task} />}
      <View of={load} lines={8}>
        {() =>
          steps.length === 0 ? (
            <Card>
              <Empty title="Nothing is recorded yet">Steps can be gone through as soon as the first one is done. {runs.isOver(run.state) ? "This run ended before that." : "This page shows them as they come."}</Empty>
            </Card>
          ) : (
            <Card isFlush>
              <div class="replay-bar">
                <Scrubber steps={steps} shown={shown} onMove={move} />
                {mayFork && <Button icon="flow" onClick={() => setForking(true)}>Fork from here</Button>}
              </div>
              <Conversation task={task} steps={steps} shown={shown} onPick={move} />
            </Card>
          )
        }
      </View>
      {isForking && <ForkDialog task={task} step={steps[shown - 1]} onClose={() => setForking(false)} />}
    </>
  );
}

function TaskTabs({ run, current }: { run: Run; current: RunTask }) {
  const tabs = run.tasks.map((task, at) => ({ id: task.task_id, name: `${at + 1}. ${firstWords(questionOf(task), 28)}`, state: toneOfRun(task.state), count: runStateName(task.state, task.question !== null) }));
  return <Tabs label="Tasks" tabs={tabs} current={current.task_id} onPick={(task) => setQuery({ task, at: null })} wraps />;
}

/** How many steps are shown: as the address says, else all. */
function placeHere(all: number): number {
  const asked = place.value.query.get("at");
  if (asked === null || !/^\d+$/.test(asked)) return all;
  return Math.min(all, Number(asked));
}
