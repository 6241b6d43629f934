// What the job says while it runs; the newest lines stay in view unless one scrolls up.
import { useEffect, useRef } from "preact/hooks";
import { logs, type LogPage } from "../api/jobs";
import type { Job } from "../api/wire";
import { plural } from "../format";
import { useLoad } from "../state/load";
import { Copy } from "../ui/copy";
import { Card } from "../ui/page";
import { View } from "../ui/view";

const MOST_LINES = 1_000;
const POLL_MS = 1_000;

export function Logs({ job }: { job: Job }) {
  const load = useLoad(`logs ${job.queue}/${job.id}`, (abort) => newest(job, abort));
  const { reload } = load;
  // No event tells of a line: while the job runs one asks.
  useEffect(() => {
    if (job.state !== "active") return reload();
    const timer = setInterval(reload, POLL_MS);
    return () => clearInterval(timer);
  }, [job.state, job.finished_ms, reload]);
  const lines = load.data?.lines ?? [];
  const total = load.data?.total ?? 0;
  return (
    <Card title="Log" aside={lines.length > 0 && <><span>{total > lines.length ? `the last ${lines.length} of ${plural(total, "line")}` : plural(total, "line")}</span><Copy text={lines.join("\n")} label="Copy the log" /></>}>
      <View of={load} lines={2}>
        {() => (lines.length ? <Lines lines={lines} /> : <p class="muted">It has logged nothing{job.state === "active" ? " yet" : ""}.</p>)}
      </View>
    </Card>
  );
}

function Lines({ lines }: { lines: string[] }) {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.length]);
  return (
    <pre
      ref={box}
      class="log"
      tabIndex={0}
      role="log"
      aria-label="Log of the job"
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 20;
      }}
    >
      {lines.map((line, at) => (
        <span key={at} class="log-line">
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

async function newest(job: Job, abort: AbortSignal): Promise<LogPage> {
  const first = await logs(job, 0, MOST_LINES, abort);
  return first.total > MOST_LINES ? logs(job, first.total - MOST_LINES, first.total, abort) : first;
}
