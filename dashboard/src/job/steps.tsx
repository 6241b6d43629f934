// The journal: steps that are done are not done again, whatever happens to the job.
import { steps, type Step } from "../api/jobs";
import type { Job } from "../api/wire";
import { duration } from "../format";
import { useJournal } from "../state/journal";
import { useEffect } from "preact/hooks";
import { useEarlier } from "../ui/earlier";
import { Card } from "../ui/page";
import { Moment } from "../ui/time";

const POLL_MS = 2_000;

export function Steps({ job }: { job: Job }) {
  const load = useJournal(`steps ${job.queue}/${job.id}`, (start, abort) => steps(job, start, abort));
  const { reload } = load;
  // No event tells of a step: while the job runs one asks.
  useEffect(() => {
    reload();
    if (job.state !== "active") return;
    const timer = setInterval(() => !document.hidden && reload(), POLL_MS);
    return () => clearInterval(timer);
  }, [job.state, job.attempts_made, job.epoch, reload]);
  const items = load.data ?? [];
  const { first, button } = useEarlier(items.length);
  // Most jobs have no steps: then there is nothing to say.
  if (items.length === 0) return null;
  return (
    <Card title="Steps" aside="recorded steps are not done twice">
      {button}
      <ol class="steps">
        {items.slice(first).map((step) => (
          <li key={step.place} class={`tone-${toneOf(step)}`}>
            <i class="dot" />
            <div>
              <b>{step.name}</b> <span class="muted">{step.kind === "step" ? "" : step.kind}</span>
              {step.failure && <p class="timeline-detail is-bad">{step.failure.message}</p>}
              {step.value !== null && step.value !== undefined && <p class="timeline-detail"><code>{shortJson(step)}</code></p>}
            </div>
            <span class="muted">
              {step.state === "done" ? duration(Math.max(0, step.ended_ms - step.started_ms)) : step.until_ms ? <>until <Moment ms={step.until_ms} /></> : step.state}
              {step.attempts > 1 && ` · ${step.attempts} attempts`}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function toneOf(step: Step): string {
  return step.state === "done" ? "completed" : step.state === "failed" ? "failed" : "active";
}

function shortJson(step: Step): string {
  const text = JSON.stringify(step.value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
