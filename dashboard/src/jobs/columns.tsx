// How a job looks as a row.
import { jobPage, queuePage } from "../addresses";
import type { JobRow, State } from "../api/wire";
import { duration, NONE } from "../format";
import { nowMs } from "../state/clock";
import { StateBadge } from "../ui/state";
import type { Column } from "../ui/table";
import { Ago } from "../ui/time";
import { keyOf } from "./actions";

interface ColumnOptions {
  selected: ReadonlySet<string>;
  toggle: (job: JobRow) => void;
  toggleAll: (isOn: boolean) => void;
  areAll: boolean;
  hidesQueue: boolean;
  state: State | undefined;
}

export function columnsOf(options: ColumnOptions): Column<JobRow>[] {
  const { selected, toggle, toggleAll, areAll, hidesQueue } = options;
  const columns: (Column<JobRow> | false)[] = [
    {
      name: "Select",
      isNameHidden: true,
      isCorner: true,
      head: <input type="checkbox" aria-label="Select all on this page" checked={areAll} onChange={(event) => toggleAll(event.currentTarget.checked)} />,
      cell: (job) => <input type="checkbox" aria-label={`Select ${job.name} ${job.id}`} checked={selected.has(keyOf(job))} onChange={() => toggle(job)} />,
    },
    {
      name: "Job",
      isTitle: true,
      cell: (job) => (
        <a class="job-name" href={jobPage(job)}>
          {job.name} <code class="muted">{shortId(job.id)}</code>
        </a>
      ),
    },
    !hidesQueue && { name: "Queue", cell: (job) => <a href={queuePage(job.queue)}>{job.queue}</a> },
    { name: "State", cell: (job) => <StateBadge state={job.state} /> },
    { name: "Tenant", cell: (job) => job.tenant ?? <span class="muted">{NONE}</span> },
    { name: "Details", isWide: true, cell: (job) => <Details job={job} /> },
    { name: "Attempts", isNumber: true, cell: (job) => job.attempts_made },
    { name: "Took", isNumber: true, cell: took },
    { name: "Added", isNumber: true, isLong: true, cell: (job) => <Ago ms={job.added_ms} /> },
  ];
  return columns.filter((column) => column !== false);
}

function Details({ job }: { job: JobRow }) {
  if (job.error) return <span class="is-bad" title={job.error}>{job.error}</span>;
  if (job.state === "delayed" && job.run_at_ms) return <span class="muted">runs <Ago ms={job.run_at_ms} /></span>;
  const fields = Object.entries(job.fields ?? {}).map(([name, value]) => `${name} ${String(value)}`);
  return <span class="muted">{[...job.tags, ...fields].join(" · ")}</span>;
}

function took(job: JobRow) {
  if (job.started_ms === null) return <span class="muted">{NONE}</span>;
  if (job.state === "active") return duration(Math.max(0, nowMs.value - job.started_ms));
  return job.finished_ms === null ? <span class="muted">{NONE}</span> : duration(Math.max(0, job.finished_ms - job.started_ms));
}

export function shortId(id: string): string {
  return id.length > 18 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id;
}
