// One run of agents, live: what it cost so far, what it does, and what it asks.
import { useEffect, useRef, useState } from "preact/hooks";
import { replayPage, runPage } from "../addresses";
import * as runs from "../api/runs";
import type { Run, RunTask } from "../api/runs";
import { Artifacts, Inputs } from "../run/artifacts";
import { Children } from "../run/children";
import { useRunEvents, type Watched } from "../run/events";
import { RunFacts } from "../run/facts";
import { Meter } from "../run/meter";
import { OutcomeCard } from "../run/outcome";
import { QuestionCard } from "../run/question";
import { StoryView } from "../run/timeline";
import { navigate, place } from "../router";
import { firstWords } from "../runs/columns";
import { RunBadge } from "../runs/state";
import { useJournal } from "../state/journal";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { useShortcuts } from "../state/shortcuts";
import { attempt } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm } from "../ui/dialog";
import { Page } from "../ui/page";
import { View } from "../ui/view";

const SOON_MS = 150;

export function RunPage({ id }: { id: string }) {
  const load = useLoad(`run ${id}`, (abort) => runs.one(id, abort));
  const [made, setMade] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const run = load.data;
  const watched = useRunEvents(id, run !== undefined, (kind) => {
    if (kind === "artifact_created") setMade((before) => before + 1);
    // One that tells of something all the time must not put the reload off for ever.
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      load.reload();
    }, SOON_MS);
  });
  const first = run?.tasks[0];
  return (
    <Page
      title={first ? firstWords(first.prompt, 60) : id}
      trail={
        <>
          <a href="/runs">Runs</a>
          {run && taskHere(run)?.parent ? <a href={runPage(id)}><code>{id}</code></a> : <code>{id}</code>}
        </>
      }
      badge={run && <RunBadge state={run.state} isAsking={run.tasks.some(({ question }) => question !== null)} />}
      actions={run && <Actions run={run} reload={load.reload} />}
    >
      <View of={load} lines={12}>
        {(found) => <Body run={found} watched={watched} made={made} reload={load.reload} />}
      </View>
    </Page>
  );
}

function Actions({ run, reload }: { run: Run; reload: () => void }) {
  const task = taskHere(run);
  const replay = (): void => navigate(replayPage(run.run_id, task?.parent ? { task: task.task_id } : {}));
  useShortcuts({ p: replay });
  async function cancel(): Promise<void> {
    const text = "Its tasks end at once, wherever they are. What was done stays done, and what was not spent goes back.";
    if (!(await confirm({ title: "Stop this run?", text, verb: "Stop it", isDangerous: true }))) return;
    await attempt("Cancelling", "The run is cancelled", () => runs.cancel(run.run_id, "from the dashboard"));
    reload();
  }
  return (
    <>
      <Button icon="play" onClick={replay}>
        Replay
      </Button>
      {!runs.isOver(run.state) && may("runs:cancel") && (
        <Button kind="danger" onClick={() => void cancel()}>
          Cancel run
        </Button>
      )}
    </>
  );
}

interface BodyProps {
  run: Run;
  watched: Watched;
  made: number;
  reload: () => void;
}

function Body({ run, watched, made, reload }: BodyProps) {
  const task = taskHere(run);
  const steps = useJournal(`steps ${task?.task_id ?? ""}`, async (start, abort) => (task ? runs.steps(task.task_id, start, abort) : { items: [], next_place: null }));
  const { reload: reloadSteps } = steps;
  // Each turn of the run brings a new one: then the journal has more as well.
  useEffect(reloadSteps, [run, reloadSteps]);
  if (task === undefined) return null;
  const isReading = runs.isOver(run.state) && !watched.isWhole;
  return (
    <>
      <Meter run={run} stories={watched.stories} isReading={isReading} />
      <div class="job">
        <div class="job-main">
          <QuestionCard task={task} onAnswered={reload} />
          <OutcomeCard task={task} />
          <Children run={run} task={task} />
          <StoryView task={task} story={watched.stories.get(task.task_id)} steps={steps.data ?? []} isReading={isReading} aside={<HowFar run={run} watched={watched} />} />
        </div>
        <div class="job-side">
          <Inputs runId={run.run_id} />
          <Artifacts runId={run.run_id} told={made} />
          <RunFacts run={run} task={task} />
        </div>
      </div>
    </>
  );
}

/** How much of the log is here. */
function HowFar({ run, watched }: { run: Run; watched: Watched }) {
  if (watched.isWhole) return <>the whole log</>;
  if (watched.state === "reconnecting") return <span class="is-bad" role="status">Reconnecting; nothing is missed</span>;
  return <>{runs.isOver(run.state) ? "reading" : "live"}</>;
}

/** The task that is looked at; on record in the address. */
export function taskHere(run: Run): RunTask | undefined {
  const asked = place.value.query.get("task");
  return run.tasks.find((task) => task.task_id === asked) ?? run.tasks[0];
}
