import { jobPage, queuePage } from "../addresses";
import { workers, type Worker } from "../api/queues";
import { count, plural } from "../format";
import { useLiveReload } from "../live/live";
import { shortId } from "../jobs/columns";
import { nowMs } from "../state/clock";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { Empty } from "../ui/notes";
import { Card, Page } from "../ui/page";
import { Ago } from "../ui/time";
import { View } from "../ui/view";
import { Providers } from "../workers/providers";
import { Sandboxes } from "../workers/sandboxes";

const LATE_MS = 30_000;

export function WorkersPage() {
  const load = useLoad("workers", workers);
  useLiveReload(load.reload, { everyMs: 1_500 });
  return (
    <Page title="Workers" lead={load.data && summary(load.data.items)}>
      <View of={load}>
        {({ items }) =>
          items.length === 0 ? (
            <Card>
              <Empty title="No worker is running">
                Jobs wait until one starts. In a terminal:
                <pre>bullpen worker your_app:pen</pre>
              </Empty>
            </Card>
          ) : (
            <div class="worker-grid">
              {items.map((worker) => (
                <WorkerCard key={worker.name} worker={worker} />
              ))}
            </div>
          )
        }
      </View>
      {may("providers:read") && <Providers />}
      {may("sandboxes:read") && <Sandboxes />}
    </Page>
  );
}

function summary(items: Worker[]): string {
  const running = items.reduce((sum, worker) => sum + worker.running.length, 0);
  return `${plural(items.length, "worker")} with ${plural(running, "running job")}`;
}

function slotsOf(worker: Worker): number {
  return Object.values(worker.queues).reduce((sum, slots) => sum + slots, 0);
}

function WorkerCard({ worker }: { worker: Worker }) {
  const isLate = nowMs.value - worker.beat_ms > LATE_MS;
  const slots = slotsOf(worker);
  return (
    <Card
      title={worker.name}
      aside={<span class={`badge ${isLate ? "tone-bad" : worker.state === "draining" ? "tone-odd" : "tone-good"}`}>{isLate ? "silent" : worker.state}</span>}
    >
      <dl class="facts">
        <dt>Where</dt>
        <dd>
          {worker.host} · process {worker.pid}
        </dd>
        <dt>Since</dt>
        <dd>
          <Ago ms={worker.started_ms} />, {plural(worker.jobs_done, "job")} done
        </dd>
        <dt>Heartbeat</dt>
        <dd class={isLate ? "is-bad" : ""}>
          <Ago ms={worker.beat_ms} />
        </dd>
        <dt>Queues</dt>
        <dd class="tags">
          {Object.entries(worker.queues).map(([queue, own]) => (
            <a key={queue} class="tag" href={queuePage(queue)}>
              {queue} · {own}
            </a>
          ))}
        </dd>
        <dt>Running</dt>
        <dd>
          {count(worker.running.length)} of {plural(slots, "slot")}
        </dd>
      </dl>
      <RunningJobs worker={worker} />
    </Card>
  );
}

function RunningJobs({ worker }: { worker: Worker }) {
  if (worker.running.length === 0) return <p class="muted running-none">Idle: it waits for jobs.</p>;
  const stuck = new Set((worker.stuck ?? []).map((job) => `${job.queue}/${job.id}`));
  return (
    <ul class="running">
      {worker.running.map((job) => (
        <li key={`${job.queue}/${job.id}`} class="state-active">
          <i class="dot" />
          <a href={jobPage(job)}>
            {job.name ?? job.queue} <code class="muted">{shortId(job.id)}</code>
          </a>
          {stuck.has(`${job.queue}/${job.id}`) && <span class="badge tone-bad">does not stop</span>}
        </li>
      ))}
    </ul>
  );
}
