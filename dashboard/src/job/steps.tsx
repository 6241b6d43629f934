// The journal: steps that are done are not done again, whatever happens to the job.
import { steps, type Step } from "../api/jobs";
import type { Job } from "../api/wire";
import { duration } from "../format";
import { useLoad } from "../state/load";
import { useEffect } from "preact/hooks";
import { Card } from "../ui/page";
import { Moment } from "../ui/time";

export function Steps({ job }: { job: Job }) {
  const load = useLoad(`steps ${job.queue}/${job.id}`, (abort) => steps(job, abort));
  const { reload } = load;
  useEffect(reload, [job.state, job.attempts_made, job.epoch, reload]);
  const items = load.data?.items ?? [];
  // Most jobs have no steps: then there is nothing to say.
  if (items.length === 0) return null;
  return (
    <Card title="Steps" aside="recorded steps are not done twice">
      <ol class="steps">
        {items.map((step) => (
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
