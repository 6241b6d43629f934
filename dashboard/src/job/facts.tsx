import type { ComponentChildren } from "preact";
import { jobPage, jobsPage, queuePage } from "../addresses";
import type { Job } from "../api/wire";
import { duration } from "../format";
import { nowMs } from "../state/clock";
import { Copy } from "../ui/copy";
import { Card } from "../ui/page";
import { Ago, Moment } from "../ui/time";

type Fact = [name: string, value: ComponentChildren];

export function Facts({ job }: { job: Job }) {
  const facts = factsOf(job).filter((fact): fact is Fact => fact !== null);
  return (
    <Card title="Facts">
      <dl class="facts">
        {facts.map(([name, value]) => (
          <>
            <dt key={name}>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
      </dl>
    </Card>
  );
}

function factsOf(job: Job): (Fact | null)[] {
  const attempts = job.options["attempts"];
  return [
    ["Queue", <a href={queuePage(job.queue)}>{job.queue}</a>],
    ["Id", <span class="copied"><code>{job.id}</code><Copy text={job.id} label="Copy the id" /></span>],
    job.tenant === null ? null : ["Tenant", <a href={jobsPage({ tenant: job.tenant })}>{job.tenant}</a>],
    job.workspace === null ? null : ["Workspace", job.workspace],
    job.group && job.group !== job.tenant ? ["Group", job.group] : null,
    ["Priority", job.priority === 0 ? "none: before all that have one" : job.priority],
    ["Attempts", `${job.attempts_made} of ${typeof attempts === "number" ? attempts : 1}`],
    ["Added", <><Moment ms={job.added_ms} /> <span class="muted"><Ago ms={job.added_ms} /></span></>],
    job.run_at_ms === null || job.state !== "delayed" ? null : ["Runs", <><Moment ms={job.run_at_ms} /> <span class="muted"><Ago ms={job.run_at_ms} /></span></>],
    job.started_ms === null ? null : ["Waited", duration(Math.max(0, job.started_ms - job.added_ms))],
    ranFor(job) === null ? null : ["Ran", ranFor(job)],
    job.worker === null ? null : ["Worker", job.worker],
    job.note === null ? null : ["Note", job.note],
    job.cancelling === null ? null : ["Cancelling", <span class="is-bad">{job.cancelling}</span>],
    job.parked === null ? null : ["Waits for", job.parked.length ? job.parked.map((name) => <span class="tag">{name}</span>) : "time to pass"],
    Object.keys(job.crashes).length ? ["Crashes", Object.entries(job.crashes).map(([kind, times]) => `${kind} ${times}`).join(", ")] : null,
    job.parent === null ? null : ["Parent", <a href={jobPage(job.parent)}>{job.parent.queue}/{job.parent.id}</a>],
    job.schedule === null ? null : ["Schedule", <a href="/schedules">{job.schedule}</a>],
    job.trace_id === null ? null : ["Trace", <span class="copied"><code>{job.trace_id}</code><Copy text={job.trace_id} label="Copy the trace id" /></span>],
    job.tags.length ? ["Tags", <span class="tags">{job.tags.map((tag) => <a class="tag" href={jobsPage({ tag })}>{tag}</a>)}</span>] : null,
  ];
}

function ranFor(job: Job): string | null {
  if (job.started_ms === null) return null;
  if (job.state === "active") return `${duration(Math.max(0, nowMs.value - job.started_ms))} so far`;
  return job.finished_ms === null ? null : duration(Math.max(0, job.finished_ms - job.started_ms));
}
