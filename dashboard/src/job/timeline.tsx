// The life of a job in order: moments, and each activation with how it ended.
import type { ComponentChildren } from "preact";
import type { Activation, Job, Moment } from "../api/wire";
import { clockTime, dayAndTime, duration, fullTime, isToday, plural } from "../format";
import { nowMs } from "../state/clock";
import { Card } from "../ui/page";
import { Moment as Time } from "../ui/time";
import { stateName } from "../ui/state";
import { Stack } from "./stack";

const MOMENTS: Record<string, [name: string, tone: string]> = {
  added: ["Added", "waiting"],
  retried: ["Retried by hand", "active"],
  cancelling: ["Told to stop", "delayed"],
  due: ["Due to run", "delayed"],
  failed: ["Failed", "failed"],
};

const OUTCOMES: Record<Activation["outcome"], [name: string, tone: string]> = {
  running: ["Running", "active"],
  completed: ["Completed", "completed"],
  failed: ["Failed", "failed"],
  retried: ["Failed, to be tried again", "failed"],
  lost: ["Lost its worker", "failed"],
  "set-aside": ["Set aside, no attempt used", "delayed"],
  "waiting-children": ["Waits for its children", "waiting-children"],
  unknown: ["Ended; nothing tells how", "waiting"],
};

interface Entry {
  atMs: number;
  tone: string;
  body: ComponentChildren;
}

export function Timeline({ job }: { job: Job }) {
  const entries = entriesOf(job);
  const timeOf = entries.every(({ atMs }) => isToday(atMs, nowMs.value)) ? clockTime : dayAndTime;
  return (
    <Card title="Timeline" aside={job.epoch > 0 && `started ${plural(job.epoch, "time")}`}>
      <ol class="timeline">
        {entries.map((entry, at) => (
          <li key={at} class={`tone-${entry.tone}`}>
            <i class="dot" />
            <div>{entry.body}</div>
            <time title={fullTime(entry.atMs)}>{timeOf(entry.atMs)}</time>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function entriesOf(job: Job): Entry[] {
  const byNumber = new Map(job.activations.map((one) => [one.number, one]));
  const entries: Entry[] = [];
  for (const moment of job.timeline) {
    if (moment.activation === null) entries.push(momentEntry(moment));
    else if (moment.kind === "active") {
      const one = byNumber.get(moment.activation);
      if (one) entries.push({ atMs: one.started_ms, tone: OUTCOMES[one.outcome][1], body: <ActivationBody one={one} /> });
    }
  }
  if (job.forgotten > 0) entries.splice(1, 0, forgottenEntry(job));
  return entries;
}

function momentEntry({ at_ms, kind, detail }: Moment): Entry {
  const [name, tone] = MOMENTS[kind] ?? [stateName(kind), kind];
  return {
    atMs: at_ms,
    tone,
    body: (
      <>
        <b>{name}</b>
        {detail && <p class="timeline-detail">{detail}</p>}
      </>
    ),
  };
}

/** The log keeps the newest events of a queue: what fell off its end is said to be gone. */
function forgottenEntry(job: Job): Entry {
  return {
    atMs: job.added_ms,
    tone: "waiting is-forgotten",
    body: (
      <>
        <b>{job.forgotten === 1 ? "Start 1 is no longer known" : `Starts 1 to ${job.forgotten} are no longer known`}</b>
        <p class="timeline-detail">The event log of the queue keeps only the newest events. Stacks that are left stand with the failure.</p>
      </>
    ),
  };
}

function ActivationBody({ one }: { one: Activation }) {
  return (
    <>
      <b>{OUTCOMES[one.outcome][0]}</b> <span class="muted">· {aboutStart(one)}</span>
      {one.crash && <p class="timeline-detail">{one.crash}</p>}
      {one.error && <p class="timeline-detail is-bad">{one.error}</p>}
      {one.next_ms !== null && <p class="timeline-detail">{nextAfter(one)} <Time ms={one.next_ms} /></p>}
      {one.stack && (
        <details class="folded">
          <summary>Stack</summary>
          <Stack text={one.stack} />
        </details>
      )}
    </>
  );
}

function aboutStart({ number, started_ms: start, ended_ms: end, outcome, worker }: Activation): string {
  const ran = end !== null ? `ran ${duration(Math.max(0, end - start))}` : outcome === "running" && `${duration(Math.max(0, nowMs.value - start))} so far`;
  return [`start ${number}`, ran, worker && `on ${worker}`].filter(Boolean).join(" · ");
}

function nextAfter(one: Activation): string {
  const wait = duration(Math.max(0, (one.next_ms ?? 0) - (one.ended_ms ?? one.started_ms)));
  return one.outcome === "retried" ? `next attempt after ${wait}, at` : `again after ${wait}, at`;
}
