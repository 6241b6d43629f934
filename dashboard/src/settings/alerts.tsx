// Who is told when something is wrong: each alert has a condition, and a channel by which it is told.
import { useState } from "preact/hooks";
import { alerts, removeAlert, saveAlert, type Alert } from "../api/access";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { attempt, say } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm, Dialog } from "../ui/dialog";
import { Field, Form, jsonFrom, LongText } from "../ui/form";
import { Empty } from "../ui/notes";
import { Card } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

const FIRST = { condition: { failed: 10, minutes: 5 }, channel: { webhook: "https://…" } };

export function AlertSettings() {
  const load = useLoad("alerts", alerts);
  const [edited, setEdited] = useState<Alert | "new" | null>(null);
  return (
    <Card title="Alerts" isFlush aside={may("alerts:write") && <Button isSmall icon="plus" onClick={() => setEdited("new")}>New alert</Button>}>
      <View of={load}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No alerts">Set one to be told when so many jobs have failed for good within so many minutes.</Empty>
          ) : (
            <Table label="Alerts" columns={columns(load.reload, setEdited)} rows={items} keyOf={(alert) => alert.id} />
          )
        }
      </View>
      {edited && (
        <AlertDialog
          alert={edited === "new" ? null : edited}
          onClose={() => {
            setEdited(null);
            load.reload();
          }}
        />
      )}
    </Card>
  );
}

function AlertDialog({ alert, onClose }: { alert: Alert | null; onClose: () => void }) {
  const { condition, channel } = alert ?? FIRST;
  return (
    <Dialog title={alert ? alert.name : "New alert"} onClose={onClose} isWide>
      <Form
        verb="Save"
        onCancel={onClose}
        onSend={async (values) => {
          await saveAlert({
            id: alert?.id ?? null,
            name: values.text("name") ?? "",
            condition: jsonFrom(values, "condition"),
            channel: jsonFrom(values, "channel"),
            is_enabled: alert?.is_enabled ?? true,
          });
          say("The alert is set");
          onClose();
        }}
      >
        <Field label="Name" name="name" value={alert?.name} isRequired />
        <LongText label="Condition (JSON)" name="condition" rows={5} value={JSON.stringify(condition, null, 2)} />
        <LongText label="Channel (JSON)" name="channel" rows={5} value={JSON.stringify(channel, null, 2)} hint='{"webhook": "https://…"} is told in JSON, {"slack": "https://…"} in a text.' />
      </Form>
    </Dialog>
  );
}

/** One of a shape that nobody is told by would else look as if all were well. */
function status(alert: Alert) {
  if (alert.is_enabled && !alert.tells) return <span class="badge tone-odd">Tells nobody</span>;
  return <span class={`badge ${alert.is_enabled ? "tone-good" : ""}`}>{alert.is_enabled ? "On" : "Off"}</span>;
}

function condition({ condition, tells }: Alert) {
  if (!tells) return <code class="muted">{JSON.stringify(condition)}</code>;
  const { failed, minutes = 1, queue } = condition as { failed: number; minutes?: number; queue?: string };
  const within = minutes === 1 ? "a minute" : `${minutes} minutes`;
  return `${failed} ${failed === 1 ? "job fails" : "jobs fail"} within ${within}${queue === undefined ? "" : ` in ${queue}`}`;
}

function columns(reload: () => void, edit: (alert: Alert) => void): Column<Alert>[] {
  async function toggle({ id, name, condition, channel, is_enabled }: Alert): Promise<void> {
    const done = is_enabled ? `${name} is off` : `${name} is on`;
    await attempt("Changing the alert", done, () => saveAlert({ id, name, condition, channel, is_enabled: !is_enabled }));
    reload();
  }
  async function remove(alert: Alert): Promise<void> {
    if (!(await confirm({ title: `Remove ${alert.name}?`, text: "Nobody is told any more.", verb: "Remove", isDangerous: true }))) return;
    await attempt("Removing", `${alert.name} is removed`, () => removeAlert(alert.id));
    reload();
  }
  return [
    { name: "Name", isTitle: true, cell: (alert) => alert.name },
    { name: "Status", cell: status },
    { name: "Told when", isWide: true, cell: condition },
    { name: "Changed", isNumber: true, cell: (alert) => <Ago ms={alert.changed_ms} /> },
    {
      name: "Actions",
      isNameHidden: true,
      cell: (alert) =>
        may("alerts:write") && (
          <div class="row-actions">
            <Button isSmall onClick={() => edit(alert)}>
              Edit
            </Button>
            <Button isSmall onClick={() => void toggle(alert)}>
              {alert.is_enabled ? "Turn off" : "Turn on"}
            </Button>
            <Button isSmall kind="danger" onClick={() => void remove(alert)}>
              Remove
            </Button>
          </div>
        ),
    },
  ];
}
