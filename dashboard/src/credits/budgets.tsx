// What a tenant may spend in a day, a month and in all, and what is used of it.
import { useState } from "preact/hooks";
import { PERIODS, removeBudget, setBudget, type Budget, type Budgets } from "../api/credits";
import { credits } from "../format";
import type { Loaded } from "../state/load";
import { may } from "../state/session";
import { attempt, say } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm, Dialog } from "../ui/dialog";
import { Choice, Field, Form, type FormValues } from "../ui/form";
import { Empty } from "../ui/notes";
import { Card } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Moment } from "../ui/time";
import { View } from "../ui/view";

const NAMES: Record<string, string> = { day: "A day", month: "A month", total: "In all" };

export function BudgetsCard({ tenant, of }: { tenant: string; of: Loaded<Budgets> }) {
  const [isSetting, setSetting] = useState(false);
  return (
    <Card title="Budgets" isFlush aside={may("credits:write") && <Button isSmall icon="plus" onClick={() => setSetting(true)}>Set budget</Button>}>
      <View of={of} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No budgets">All that is available may be spent at any time.</Empty>
          ) : (
            <Table label="Budgets" columns={columns(of.reload)} rows={items} keyOf={(budget) => budget.period} />
          )
        }
      </View>
      {isSetting && (
        <BudgetDialog
          tenant={tenant}
          onClose={() => {
            setSetting(false);
            of.reload();
          }}
        />
      )}
    </Card>
  );
}

function BudgetDialog({ tenant, onClose }: { tenant: string; onClose: () => void }) {
  async function send(values: FormValues): Promise<void> {
    const period = values.text("period") ?? "";
    const amount = values.number("credits") ?? 0;
    await setBudget(period, { tenant, credits: amount });
    say(`${tenant} may spend ${amount} credits: ${NAMES[period]?.toLowerCase() ?? period}`);
    onClose();
  }
  return (
    <Dialog title={`Budget of ${tenant}`} onClose={onClose}>
      <Form verb="Set" onCancel={onClose} onSend={send}>
        <Choice label="Period" name="period" options={PERIODS} />
        <Field label="Credits" name="credits" type="number" min={0} isRequired hint="whole credits; days and months are those of UTC" />
      </Form>
    </Dialog>
  );
}

function columns(reload: () => void): Column<Budget>[] {
  async function remove({ tenant, period }: Budget): Promise<void> {
    const text = `${tenant} may spend all that is available, unless another budget says otherwise.`;
    if (!(await confirm({ title: `Remove the budget (${period})?`, text, verb: "Remove", isDangerous: true }))) return;
    await attempt("Removing", "The budget is removed", () => removeBudget(period, tenant));
    reload();
  }
  return [
    { name: "Period", isTitle: true, cell: (budget) => NAMES[budget.period] ?? budget.period },
    { name: "Used", isLong: true, cell: used },
    { name: "Held", isNumber: true, cell: (budget) => <span class="muted">{credits(budget.held)}</span> },
    { name: "Left", isNumber: true, cell: (budget) => credits(budget.left) },
    { name: "Renews", cell: (budget) => (budget.renews_ms === null ? <span class="muted">never</span> : <Moment ms={budget.renews_ms} />) },
    {
      name: "Actions",
      isNameHidden: true,
      cell: (budget) =>
        may("credits:write") && (
          <div class="row-actions">
            <Button isSmall kind="quiet" onClick={() => void remove(budget)}>
              Remove
            </Button>
          </div>
        ),
    },
  ];
}

/** Held and spent together: neither is there for others. */
function used({ period, most, left, held, spent }: Budget) {
  const both = held + spent;
  return (
    <>
      {credits(both)} <span class="muted">of {credits(most)}</span>
      {most > 0 && <meter class={left < 0.2 * most ? "is-near" : ""} max={most} value={Math.min(both, most)} aria-label={`Used of the budget: ${NAMES[period] ?? period}`} />}
    </>
  );
}
