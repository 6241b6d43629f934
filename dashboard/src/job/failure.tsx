// Why it failed, and where in the code; stacks that no start in the timeline can claim stand below.
import { deadLettersPage } from "../addresses";
import type { Job } from "../api/wire";
import { plural } from "../format";
import { Card } from "../ui/page";
import { Stack } from "./stack";

export function FailureCard({ job }: { job: Job }) {
  const { failure } = job;
  if (!failure) return null;
  const stack = failure.stack || (job.stacks.at(-1) ?? "");
  const claimed = new Set(job.activations.map((one) => one.stack));
  const earlier = job.stacks.filter((one) => one !== stack && !claimed.has(one));
  return (
    <Card
      title={job.state === "failed" ? "Failure" : "Last failed attempt"}
      aside={
        <>
          <span class="badge tone-bad">{failure.kind}</span>
          <a href={deadLettersPage({ queue: job.queue, name: job.name })}>others of this type</a>
        </>
      }
    >
      <p class="failure-message">
        {failure.type && <b>{failure.type}: </b>}
        {failure.message}
      </p>
      {stack && <Stack text={stack} />}
      {earlier.length > 0 && (
        <details class="folded">
          <summary>{plural(earlier.length, "earlier attempt")}</summary>
          {earlier.map((one, at) => (
            <Stack key={at} text={one} />
          ))}
        </details>
      )}
    </Card>
  );
}
