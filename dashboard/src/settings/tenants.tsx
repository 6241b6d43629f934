// Tenants and their plans: what each may use, from now on.
import { useState } from "preact/hooks";
import { makeTenant, removeTenant, setPlan, setTenantDisabled, tenants, type Plan, type Tenant } from "../api/access";
import { GroupLimitFields, groupLimitsFrom, limitsInWords } from "../queue/limitfields";
import { useLoad } from "../state/load";
import { attempt, say } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm, Dialog } from "../ui/dialog";
import { Field, Form, type FormValues } from "../ui/form";
import { Empty } from "../ui/notes";
import { Card } from "../ui/page";
import { MoreThanShown } from "../ui/pager";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

export function TenantSettings() {
  const load = useLoad("tenants", tenants);
  const [edited, setEdited] = useState<Tenant | "new" | null>(null);
  return (
    <Card title="Tenants" isFlush aside={<Button isSmall icon="plus" onClick={() => setEdited("new")}>New tenant</Button>}>
      <View of={load}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <Empty title="No tenants">Jobs may name any tenant. One that is made here has a plan: its limits, its weight, its priorities.</Empty>
          ) : (
            <>
              <Table label="Tenants" columns={columns(load.reload, setEdited)} rows={items} keyOf={(tenant) => tenant.id} />
              <MoreThanShown of={{ items, next_cursor }} />
            </>
          )
        }
      </View>
      {edited && (
        <TenantDialog
          tenant={edited === "new" ? null : edited}
          onClose={() => {
            setEdited(null);
            load.reload();
          }}
        />
      )}
    </Card>
  );
}

function planFrom(values: FormValues, before: Plan): Plan {
  const limits = Object.fromEntries(Object.entries(groupLimitsFrom(values)).filter(([, value]) => value !== null));
  return {
    ...before,
    limits,
    default_priority: values.number("default_priority") ?? 5,
    highest_priority: values.number("highest_priority") ?? 3,
    uploads_mb: values.number("uploads_mb"),
  };
}

function TenantDialog({ tenant, onClose }: { tenant: Tenant | null; onClose: () => void }) {
  async function save(values: FormValues): Promise<void> {
    const plan = planFrom(values, tenant?.plan ?? {});
    const id = tenant?.id ?? values.text("id") ?? "";
    const name = values.text("name");
    if (tenant) await setPlan(id, plan);
    else await makeTenant({ id, plan, ...(name === null ? {} : { name }) });
    say(`The plan of ${id} counts from now on`);
    onClose();
  }
  return (
    <Dialog title={tenant ? `Plan of ${tenant.name}` : "New tenant"} onClose={onClose}>
      <Form verb="Save" onCancel={onClose} onSend={save}>
        {!tenant && (
          <div class="form-row">
            <Field label="Id" name="id" isRequired hint="as jobs name it" />
            <Field label="Name" name="name" hint="for people" />
          </div>
        )}
        <GroupLimitFields limits={tenant?.plan.limits ?? {}} />
        <div class="form-row">
          <Field label="Usual priority" name="default_priority" type="number" min={1} value={tenant?.plan.default_priority ?? 5} />
          <Field label="Highest priority" name="highest_priority" type="number" min={1} value={tenant?.plan.highest_priority ?? 3} hint="lower runs first" />
        </div>
        <Field label="Megabytes of uploads" name="uploads_mb" type="number" min={0} value={tenant?.plan.uploads_mb} hint="that wait for a run; empty: as the server says" />
      </Form>
    </Dialog>
  );
}

function columns(reload: () => void, edit: (tenant: Tenant) => void): Column<Tenant>[] {
  async function remove(tenant: Tenant): Promise<void> {
    const text = "The tenant and its plan are forgotten. Its jobs, keys and audit entries stay.";
    if (!(await confirm({ title: `Remove ${tenant.name}?`, text, verb: "Remove", isDangerous: true }))) return;
    await attempt("Removing", `${tenant.name} is removed`, () => removeTenant(tenant.id));
    reload();
  }
  async function setDisabled(tenant: Tenant, isDisabled: boolean): Promise<void> {
    const text = "Its new jobs are refused until it is enabled again. Those that it has go on.";
    if (isDisabled && !(await confirm({ title: `Disable ${tenant.name}?`, text, verb: "Disable", isDangerous: true }))) return;
    const done = isDisabled ? `No more jobs of ${tenant.name} are taken` : `Jobs of ${tenant.name} are taken again`;
    await attempt("Changing the tenant", done, () => setTenantDisabled(tenant.id, isDisabled));
    reload();
  }
  return [
    { name: "Tenant", isTitle: true, cell: (tenant) => <>{tenant.name} {tenant.name !== tenant.id && <code class="muted">{tenant.id}</code>}</> },
    { name: "Status", cell: (tenant) => (tenant.disabled_ms ? <span class="badge tone-bad">Disabled</span> : <span class="badge tone-good">Active</span>) },
    { name: "Plan", isWide: true, cell: (tenant) => <span class="muted">{limitsInWords(tenant.plan.limits)}</span> },
    { name: "Priority", isNumber: true, cell: ({ plan }) => `${plan.default_priority ?? 5}, highest ${plan.highest_priority ?? 3}` },
    { name: "Made", isNumber: true, cell: (tenant) => <Ago ms={tenant.created_ms} /> },
    {
      name: "Actions",
      isNameHidden: true,
      cell: (tenant) => (
        <div class="row-actions">
          <Button isSmall onClick={() => edit(tenant)}>
            Plan
          </Button>
          <Button isSmall onClick={() => void setDisabled(tenant, tenant.disabled_ms === null)}>
            {tenant.disabled_ms === null ? "Disable" : "Enable"}
          </Button>
          <Button isSmall kind="danger" onClick={() => void remove(tenant)}>
            Remove
          </Button>
        </div>
      ),
    },
  ];
}
