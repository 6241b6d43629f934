// What a tenant's agents may still spend, and where it went.
import { useState } from "preact/hooks";
import { balance, budgets, statement, type Balance, type StatementEntry } from "../api/credits";
import { BudgetsCard } from "../credits/budgets";
import { DepositDialog } from "../credits/deposit";
import { credits, plural } from "../format";
import { useLiveReload } from "../live/live";
import { place } from "../router";
import { useLoad } from "../state/load";
import { may, me } from "../state/session";
import { Button } from "../ui/button";
import { Typed } from "../ui/filters";
import { Empty } from "../ui/notes";
import { cursorHere, Pager } from "../ui/pager";
import { Card, Figure, Page } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Moment } from "../ui/time";
import { View } from "../ui/view";

const USUAL = "default";

export function CreditsPage() {
  const own = me.value?.tenant ?? null;
  const tenant = own ?? place.value.query.get("tenant") ?? USUAL;
  const cursor = cursorHere();
  const [isDepositing, setDepositing] = useState(false);
  const sums = useLoad(`credits ${tenant}`, (abort) => balance(tenant, abort));
  const limits = useLoad(`budgets ${tenant}`, (abort) => budgets(tenant, abort));
  const entries = useLoad(`statement ${tenant} ${cursor ?? ""}`, (abort) => statement(tenant, cursor, abort));
  const reload = (): void => {
    sums.reload();
    limits.reload();
    if (cursor === null) entries.reload();
  };
  useLiveReload(reload, { everyMs: 2_000 });
  const isEmpty = sums.data !== undefined && isUnused(sums.data);
  const hasBudgets = limits.data !== undefined && limits.data.items.length > 0;
  return (
    <Page
      title="Credits"
      lead={own === null ? "What a tenant's agents may spend, and where it went." : `What the agents of ${own} may spend, and where it went.`}
      actions={may("credits:write") && <Button kind="main" icon="plus" onClick={() => setDepositing(true)}>Deposit</Button>}
    >
      {own === null && (
        <div class="filters" role="search">
          <label class="filter-named">
            Tenant
            <Typed label="Tenant" word="tenant" value={tenant} />
          </label>
        </div>
      )}
      {isEmpty ? (
        <>
          <Card>
            <NoPurse tenant={tenant} />
          </Card>
          {hasBudgets && <BudgetsCard tenant={tenant} of={limits} />}
        </>
      ) : (
        <>
          <View of={sums} lines={2}>
            {(found) => (
              <div class="figures">
                <Figure label="Available" value={credits(found.available)} note="for new runs" tone={found.available > 0 ? undefined : "bad"} />
                <Figure label="Held" value={credits(found.held)} note="set aside for runs under way" />
                <Figure label="Spent" value={credits(found.spent)} note="in all" />
              </div>
            )}
          </View>
          {(hasBudgets || may("credits:write")) && <BudgetsCard tenant={tenant} of={limits} />}
          <Card title="Statement" isFlush>
            <View of={entries} lines={8}>
              {(page) =>
                page.items.length === 0 ? (
                  <Empty title="Nothing moved yet">Each deposit, hold, charge and refund leaves a line here.</Empty>
                ) : (
                  <>
                    <Table label="Statement" columns={COLUMNS} rows={page.items} keyOf={(entry) => String(entry.number)} />
                    <Pager next={page.next_cursor} shown={page.next_cursor || cursor ? `${page.items.length} on this page` : plural(page.items.length, "entry", "entries")} />
                  </>
                )
              }
            </View>
          </Card>
        </>
      )}
      {isDepositing && (
        <DepositDialog
          tenant={tenant}
          onClose={() => {
            setDepositing(false);
            reload();
          }}
        />
      )}
    </Page>
  );
}

function isUnused({ available, held, spent }: Balance): boolean {
  return available === 0 && held === 0 && spent === 0;
}

function NoPurse({ tenant }: { tenant: string }) {
  return (
    <Empty title={`${tenant} has no credits`}>
      A run is only taken if its tenant can pay for it. {may("credits:write") ? "Deposit some, and the statement begins." : "Ask an admin to deposit some."}
    </Empty>
  );
}

const KINDS: Record<string, [name: string, tone: string]> = {
  deposit: ["Deposit", "tone-good"],
  withdrawal: ["Withdrawal", "tone-odd"],
  hold: ["Held", ""],
  refund: ["Refund", "tone-good"],
  charge: ["Charge", "tone-plain"],
  overrun: ["Overrun", "tone-bad"],
  uncovered: ["Uncovered", "tone-bad"],
};

const COLUMNS: Column<StatementEntry>[] = [
  { name: "When", cell: (entry) => <Moment ms={entry.at_ms} /> },
  { name: "What", isTitle: true, cell: (entry) => <span class={`badge ${KINDS[entry.kind]?.[1] ?? ""}`}>{KINDS[entry.kind]?.[0] ?? entry.kind}</span> },
  { name: "Memo", isWide: true, cell: (entry) => <span class="muted">{entry.memo}</span> },
  { name: "Credits", isNumber: true, cell: (entry) => credits(entry.amount) },
  { name: "Available", isNumber: true, cell: (entry) => credits(entry.available) },
  { name: "Held", isNumber: true, cell: (entry) => <span class="muted">{credits(entry.held)}</span> },
  { name: "Spent", isNumber: true, cell: (entry) => <span class="muted">{credits(entry.spent)}</span> },
];
