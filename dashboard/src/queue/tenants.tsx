// The queue split by tenant, for those who see all of them.
import { jobsPage } from "../addresses";
import type { Counts, QueueDetail } from "../api/wire";
import { count } from "../format";
import { Empty } from "../ui/notes";
import { Card } from "../ui/page";
import { ALL_STATES, countOf, StateBar, stateName } from "../ui/state";
import { Table, type Column } from "../ui/table";

interface Row {
  tenant: string;
  counts: Partial<Counts>;
}

export function TenantSplit({ queue }: { queue: QueueDetail }) {
  const rows = Object.entries(queue.tenants ?? {}).map(([tenant, counts]) => ({ tenant, counts: underscored(counts) }));
  const columns: Column<Row>[] = [
    {
      name: "Tenant",
      isTitle: true,
      cell: ({ tenant }) => (tenant ? <a href={jobsPage({ queue: queue.name, tenant })}>{tenant}</a> : <span class="muted">no tenant</span>),
    },
    { name: "States", cell: ({ counts }) => <StateBar counts={counts} /> },
    ...ALL_STATES.map((state) => ({
      name: stateName(state),
      isNumber: true,
      cell: ({ counts }: Row) => <span class={countOf(counts, state) ? "" : "muted"}>{count(countOf(counts, state))}</span>,
    })),
  ];
  return (
    <Card isFlush>
      {rows.length === 0 ? (
        <Empty title="No jobs of tenants">A job names its tenant when it is added.</Empty>
      ) : (
        <Table label="Jobs by tenant" columns={columns} rows={rows} keyOf={(row) => row.tenant} />
      )}
      {queue.more_tenants ? <p class="muted">{`And ${count(queue.more_tenants)} more tenants, with fewer jobs.`}</p> : null}
    </Card>
  );
}

function underscored(counts: Partial<Record<string, number>>): Partial<Counts> {
  return Object.fromEntries(Object.entries(counts).map(([state, jobs]) => [state.replace("-", "_"), jobs]));
}
