// API keys: the text of a new one is shown once, and never again.
import { useState } from "preact/hooks";
import { keys, makeKey, revokeKey, ROLES, type ApiKey } from "../api/access";
import { useLoad } from "../state/load";
import { nowMs, serverNow } from "../state/clock";
import { secret } from "../state/secret";
import { me } from "../state/session";
import { attempt } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm, Dialog } from "../ui/dialog";
import { Choice, Field, Form, type FormValues } from "../ui/form";
import { Empty } from "../ui/notes";
import { Card } from "../ui/page";
import { MoreThanShown } from "../ui/pager";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

const DAY_MS = 86_400_000;

export function KeySettings() {
  const load = useLoad("keys", keys);
  const [isMaking, setMaking] = useState(false);
  return (
    <Card title="API keys" isFlush aside={<Button isSmall icon="plus" onClick={() => setMaking(true)}>New key</Button>}>
      <View of={load}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <Empty title="No API keys">Programs that call the API need one. As long as there is neither key nor user, only this machine is served.</Empty>
          ) : (
            <>
              <Table label="API keys" columns={columns(load.reload)} rows={items} keyOf={(key) => key.id} />
              <MoreThanShown of={{ items, next_cursor }} />
            </>
          )
        }
      </View>
      {isMaking && (
        <NewKeyDialog
          onClose={() => {
            setMaking(false);
            load.reload();
          }}
        />
      )}
    </Card>
  );
}

function NewKeyDialog({ onClose }: { onClose: () => void }) {
  async function make(values: FormValues): Promise<void> {
    const days = values.number("days");
    const queues = values.text("queues");
    const made = await makeKey({
      name: values.text("name") ?? "",
      role: values.text("role") ?? "producer",
      tenant: values.text("tenant"),
      queues: queues === null ? null : queues.split(/[\s,]+/).filter(Boolean),
      expires_ms: days === null ? null : serverNow() + days * DAY_MS,
    });
    secret.value = { title: "Your new key", text: made.text ?? "", copies: "Copy the key" };
    onClose();
  }
  return (
    <Dialog title="New API key" onClose={onClose}>
      {me.value?.kind === "open" && <ClosesTheDoor />}
      <Form verb="Make the key" onCancel={onClose} onSend={make}>
        <Field label="Name" name="name" isRequired hint="what it is for" />
        <Choice label="Role" name="role" options={ROLES} value="producer" />
        <div class="form-row">
          <Field label="Tenant" name="tenant" hint="empty: all tenants" />
          <Field label="Queues" name="queues" hint="empty: all queues" />
        </div>
        <Field label="Good for days" name="days" type="number" min={1} hint="empty: until it is revoked" />
      </Form>
    </Dialog>
  );
}

function ClosesTheDoor() {
  return (
    <p class="caution">
      As soon as there is a key, this page asks everybody to log in, and there is no user yet who could.{" "}
      <a href="/settings/users">Make an admin first.</a>
    </p>
  );
}

function status(key: ApiKey) {
  if (key.revoked_ms) return <span class="badge tone-bad">Revoked</span>;
  if (key.expires_ms && key.expires_ms < nowMs.value) return <span class="badge tone-odd">Expired</span>;
  return <span class="badge tone-good">Good</span>;
}

function columns(reload: () => void): Column<ApiKey>[] {
  async function revoke(key: ApiKey): Promise<void> {
    const text = "Whoever uses it is refused from this moment on. This cannot be undone.";
    if (!(await confirm({ title: `Revoke ${key.name}?`, text, verb: "Revoke", isDangerous: true }))) return;
    await attempt("Revoking", `${key.name} is revoked`, () => revokeKey(key.id));
    reload();
  }
  return [
    { name: "Name", isTitle: true, cell: (key) => key.name },
    { name: "Key", cell: (key) => <code class="muted">bp_{key.prefix}_…</code> },
    { name: "Status", cell: status },
    { name: "Role", cell: (key) => key.role },
    { name: "Scope", isWide: true, cell: (key) => <span class="muted">{[key.tenant, ...(key.queues ?? [])].filter(Boolean).join(", ") || "all"}</span> },
    { name: "Last used", isNumber: true, cell: (key) => (key.last_used_ms ? <Ago ms={key.last_used_ms} /> : <span class="muted">never</span>) },
    { name: "Expires", isNumber: true, cell: (key) => (key.expires_ms ? <Ago ms={key.expires_ms} /> : <span class="muted">never</span>) },
    {
      name: "Actions",
      isNameHidden: true,
      cell: (key) =>
        !key.revoked_ms && (
          <Button isSmall kind="danger" onClick={() => void revoke(key)}>
            Revoke
          </Button>
        ),
    },
  ];
}
