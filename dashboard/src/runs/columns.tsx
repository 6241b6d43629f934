// How a run looks as a row.
import { runPage } from "../addresses";
import { isOver, type RunRow } from "../api/runs";
import { credits, duration, NONE } from "../format";
import { nowMs } from "../state/clock";
import { me } from "../state/session";
import type { Column } from "../ui/table";
import { Ago } from "../ui/time";
import { RunBadge } from "./state";

export function columnsOf(rows: RunRow[]): Column<RunRow>[] {
  const areOfOne = me.value?.tenant !== null && rows.every((run) => run.tenant === me.value?.tenant);
  const columns: (Column<RunRow> | false)[] = [
    { name: "State", cell: (run) => <RunBadge state={run.state} isAsking={run.is_asking} /> },
    {
      name: "Run",
      isTitle: true,
      isWide: true,
      cell: (run) => (
        <a href={runPage(run.run_id)} title={run.prompt}>
          {firstWords(run.prompt) || run.run_id}
        </a>
      ),
    },
    !areOfOne && { name: "Tenant", cell: (run) => run.tenant },
    rows.some((run) => run.workspace !== null) && { name: "Workspace", cell: (run) => run.workspace ?? <span class="muted">{NONE}</span> },
    { name: "Who", cell: (run) => run.created_by || <span class="muted">{NONE}</span> },
    { name: "Took", isNumber: true, cell: took },
    { name: "Credits", isNumber: true, cell: (run) => credits(run.spent) },
    { name: "Asked", isNumber: true, isLong: true, cell: (run) => <Ago ms={run.created_ms} /> },
  ];
  return columns.filter((column) => column !== false);
}

export function firstWords(prompt: string, most = 120): string {
  const line = prompt.trim().split(/\s+/).join(" ");
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

function took(run: RunRow) {
  const from = run.started_ms ?? run.created_ms;
  if (run.finished_ms !== null) return duration(Math.max(0, run.finished_ms - from));
  if (run.started_ms === null || isOver(run.state)) return <span class="muted">{NONE}</span>;
  return duration(Math.max(0, nowMs.value - from));
}
