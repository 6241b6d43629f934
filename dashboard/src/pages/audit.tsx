import { audit, type AuditEntry, type AuditFilter } from "../api/access";
import { plural } from "../format";
import { place } from "../router";
import { useLoad } from "../state/load";
import { Button } from "../ui/button";
import { Typed } from "../ui/filters";
import { Empty } from "../ui/notes";
import { cursorHere, Pager } from "../ui/pager";
import { Card, Page } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Moment } from "../ui/time";
import { View } from "../ui/view";

const WORDS = { actor: "Who", action: "Action", target: "Target", tenant: "Tenant" } as const;
const NAMES = Object.entries(WORDS) as [keyof typeof WORDS, string][];

export function AuditPage() {
  const filter: AuditFilter = {};
  for (const [word] of NAMES) {
    const value = place.value.query.get(word);
    if (value) filter[word] = value;
  }
  const cursor = cursorHere();
  const load = useLoad(JSON.stringify([filter, cursor]), (abort) => audit(filter, cursor, abort));
  return (
    <Page title="Audit" lead="Who did what, when, and how it ended." actions={<Button icon="retry" onClick={load.reload}>Refresh</Button>}>
      <div class="filters" role="search">
        {NAMES.map(([word, name]) => (
          <Typed key={word} label={name} word={word} value={filter[word]} />
        ))}
      </div>
      <Card isFlush>
        <View of={load}>
          {({ items, next_cursor }) =>
            items.length === 0 ? (
              <NoEntries isFiltered={Object.keys(filter).length > 0} />
            ) : (
              <>
                <Table label="Audit log" columns={COLUMNS} rows={items} keyOf={(entry) => String(entry.number)} />
                <Pager next={next_cursor} shown={plural(items.length, "entry", "entries")} />
              </>
            )
          }
        </View>
      </Card>
    </Page>
  );
}

function NoEntries({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No entry fits">Take a filter away. Each one is compared with the whole word.</Empty>;
  return <Empty title="Nothing was done yet">Every change that goes through the server leaves a line here.</Empty>;
}

function inWords(details: AuditEntry["details"]): string {
  return Object.entries(details)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" · ");
}

const COLUMNS: Column<AuditEntry>[] = [
  { name: "When", cell: (entry) => <Moment ms={entry.at_ms} /> },
  { name: "Who", cell: (entry) => entry.actor },
  { name: "Action", isTitle: true, cell: (entry) => entry.action },
  { name: "Target", cell: (entry) => entry.target && <code>{entry.target}</code> },
  { name: "Tenant", cell: (entry) => entry.tenant ?? <span class="muted">–</span> },
  {
    name: "Outcome",
    cell: (entry) => <span class={`badge ${entry.outcome === "ok" ? "tone-good" : "tone-bad"}`}>{entry.outcome}</span>,
  },
  { name: "Details", isWide: true, cell: (entry) => <span class="muted">{inWords(entry.details)}</span> },
];
