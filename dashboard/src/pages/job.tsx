// One job, with all that is known of it, as it goes on.
import { useEffect, useRef, useState } from "preact/hooks";
import { flowPage, queuePage } from "../addresses";
import * as jobs from "../api/jobs";
import type { Job, Json } from "../api/wire";
import { FlowGraph } from "../charts/flowgraph";
import { isAllowed, leaving, keyOf, perform, verbOf } from "../jobs/actions";
import { EditDialog, SignalDialog } from "../job/dialogs";
import { useJobEvents } from "../job/events";
import { Facts } from "../job/facts";
import { FailureCard } from "../job/failure";
import { Logs } from "../job/logs";
import { Steps } from "../job/steps";
import { Timeline } from "../job/timeline";
import { useLiveReload } from "../live/live";
import { navigate } from "../router";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { useShortcuts } from "../state/shortcuts";
import { Button } from "../ui/button";
import { JsonView } from "../ui/json";
import { Card, Page } from "../ui/page";
import { StateBadge } from "../ui/state";
import { View } from "../ui/view";

const SOON_MS = 120;

export function JobPage({ queue, id }: { queue: string; id: string }) {
  const ref = { queue, id };
  const load = useLoad(`job ${queue}/${id}`, (abort) => jobs.one(ref, abort));
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useJobEvents(ref, () => {
    // One that tells of its progress all the time must not put the reload off for ever.
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      load.reload();
    }, SOON_MS);
  });
  const job = load.data;
  return (
    <Page
      title={job?.name ?? id}
      trail={
        <>
          <a href={queuePage(queue)}>{queue}</a>
          <code>{id}</code>
        </>
      }
      badge={job && <StateBadge state={job.state} />}
      actions={job && <Actions job={job} reload={load.reload} />}
    >
      <View of={load} lines={12}>
        {(found) => <Body job={found} />}
      </View>
    </Page>
  );
}

function Body({ job }: { job: Job }) {
  return (
    <div class="job">
      <div class="job-main">
        <ProgressBar progress={job.progress} isActive={job.state === "active"} />
        <FailureCard job={job} />
        {job.has_children || job.parent ? <FlowCard job={job} /> : null}
        <Card title="Data">
          <JsonView value={job.data} />
        </Card>
        {job.state === "completed" && (
          <Card title="Result">
            <JsonView value={job.result} />
          </Card>
        )}
        <Timeline job={job} />
        <Steps job={job} />
        <Logs job={job} />
      </div>
      <div class="job-side">
        <Facts job={job} />
        <Card title="Options">
          <JsonView value={told(job.options)} />
        </Card>
        {Object.keys(job.headers).length > 0 && (
          <Card title="Headers">
            <JsonView value={job.headers} />
          </Card>
        )}
      </div>
    </div>
  );
}

/** Options that say something: what is empty is as usual. */
function told(options: Record<string, Json>): Json {
  const isSaid = (value: Json): boolean => Boolean(value) && !(typeof value === "object" && value !== null && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(options).filter(([, value]) => isSaid(value)));
}

function ProgressBar({ progress, isActive }: { progress: Json; isActive: boolean }) {
  if (progress === null || !isActive) return null;
  const percent = typeof progress === "number" ? Math.min(100, Math.max(0, progress)) : null;
  return (
    <Card title="Progress" aside={percent === null ? <code>{JSON.stringify(progress)}</code> : `${Math.round(percent)} %`}>
      {percent !== null && <progress max={100} value={percent} aria-label="Progress of the job" />}
    </Card>
  );
}

const OVER = ["completed", "failed"];

function FlowCard({ job }: { job: Job }) {
  const root = job.has_children ? job : (job.parent ?? job);
  const load = useLoad(`flow ${keyOf(root)}`, (abort) => jobs.flow(root, abort));
  const isOver = OVER.includes(load.data?.state ?? "");
  const { reload } = load;
  useEffect(reload, [job.state, reload]);
  useLiveReload(() => !isOver && reload(), { everyMs: 2_000 });
  return (
    <Card title="Flow" aside={<a href={flowPage(root)}>Open the graph</a>}>
      <View of={load} lines={3}>
        {(tree) => <FlowGraph root={tree} current={job} />}
      </View>
    </Card>
  );
}

const STEERING: jobs.JobAction[] = ["retry", "promote", "cancel"];
const EDITABLE = ["waiting", "prioritized", "delayed"];

function Actions({ job, reload }: { job: Job; reload: () => void }) {
  const [open, setOpen] = useState<"edit" | "signal" | null>(null);
  const close = (): void => {
    setOpen(null);
    reload();
  };
  const act = (action: jobs.JobAction): void => {
    void perform(action, [job], () => (action === "remove" ? undefined : reload()));
    if (action === "remove" && leaving.value.has(keyOf(job))) navigate(queuePage(job.queue));
  };
  useShortcuts({ r: () => act("retry") });
  return (
    <>
      {STEERING.filter((action) => isAllowed(action, job.state)).map((action) => (
        <Button key={action} onClick={() => act(action)}>
          {verbOf(action)}
        </Button>
      ))}
      {EDITABLE.includes(job.state) && may("jobs:write") && <Button onClick={() => setOpen("edit")}>Edit</Button>}
      {!OVER.includes(job.state) && may("jobs:signal") && <Button onClick={() => setOpen("signal")}>Signal</Button>}
      {isAllowed("remove", job.state) && (
        <Button kind="danger" onClick={() => act("remove")}>
          {verbOf("remove")}
        </Button>
      )}
      {open === "edit" && <EditDialog job={job} onClose={close} />}
      {open === "signal" && <SignalDialog job={job} onClose={close} />}
    </>
  );
}
