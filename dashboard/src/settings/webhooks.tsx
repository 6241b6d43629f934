// Webhooks: who is told of events over HTTP; the secret of a new one is shown once.
import { useState } from "preact/hooks";
import { jobsPage } from "../addresses";
import { DELIVERIES, makeWebhook, removeWebhook, setWebhookEnabled, tryWebhook, webhooks, type Webhook } from "../api/webhooks";
import { useLoad } from "../state/load";
import { secret } from "../state/secret";
import { may } from "../state/session";
import { attempt } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm, Dialog } from "../ui/dialog";
import { Field, Form, type FormValues } from "../ui/form";
import { Empty } from "../ui/notes";
import { Card } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { View } from "../ui/view";

export function WebhookSettings() {
  const load = useLoad("webhooks", webhooks);
  const [isMaking, setMaking] = useState(false);
  return (
    <Card title="Webhooks" isFlush aside={may("webhooks:write") && <Button isSmall icon="plus" onClick={() => setMaking(true)}>New webhook</Button>}>
      <View of={load}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No webhooks">Make one to have your own server told when jobs complete, fail or stall. Each delivery is a job of its own, tried up to ten times.</Empty>
          ) : (
            <Table label="Webhooks" columns={columns(load.reload)} rows={items} keyOf={(webhook) => webhook.id} />
          )
        }
      </View>
      {isMaking && (
        <NewWebhookDialog
          onClose={() => {
            setMaking(false);
            load.reload();
          }}
        />
      )}
    </Card>
  );
}

const words = (text: string | null): string[] => (text ?? "").split(/[\s,]+/).filter(Boolean);

function NewWebhookDialog({ onClose }: { onClose: () => void }) {
  async function make(values: FormValues): Promise<void> {
    const queues = words(values.text("queues"));
    const made = await makeWebhook({
      name: values.text("name") ?? "",
      url: values.text("url") ?? "",
      queues: queues.length === 0 ? null : queues,
      kinds: words(values.text("kinds")),
      tenant: values.text("tenant"),
    });
    secret.value = { title: "Its secret", text: made.secret ?? "", copies: "Copy the secret" };
    onClose();
  }
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <Form verb="Make the webhook" onCancel={onClose} onSend={make}>
        <Field label="Name" name="name" isRequired hint="what it is for" />
        <Field label="Address" name="url" isRequired hint="https://… of your server" />
        <Field label="Events" name="kinds" value="completed failed" isRequired hint="kinds of events, with spaces" />
        <div class="form-row">
          <Field label="Queues" name="queues" hint="empty: all queues" />
          <Field label="Tenant" name="tenant" hint="empty: all you see" />
        </div>
      </Form>
    </Dialog>
  );
}

function columns(reload: () => void): Column<Webhook>[] {
  async function toggle({ id, name, is_enabled }: Webhook): Promise<void> {
    await attempt("Changing the webhook", is_enabled ? `${name} is off` : `${name} is on`, () => setWebhookEnabled(id, !is_enabled));
    reload();
  }
  async function remove(webhook: Webhook): Promise<void> {
    const text = "It is told nothing any more. Deliveries that wait end without a call.";
    if (!(await confirm({ title: `Remove ${webhook.name}?`, text, verb: "Remove", isDangerous: true }))) return;
    await attempt("Removing", `${webhook.name} is removed`, () => removeWebhook(webhook.id));
    reload();
  }
  return [
    { name: "Name", isTitle: true, cell: (webhook) => webhook.name },
    { name: "Status", cell: (webhook) => <span class={`badge ${webhook.is_enabled ? "tone-good" : ""}`}>{webhook.is_enabled ? "On" : "Off"}</span> },
    { name: "Address", isWide: true, cell: (webhook) => <code class="muted">{webhook.url}</code> },
    { name: "Events", cell: (webhook) => <span class="muted">{webhook.kinds.join(", ")}</span> },
    { name: "Scope", cell: (webhook) => <span class="muted">{[webhook.tenant, ...(webhook.queues ?? [])].filter(Boolean).join(", ") || "all"}</span> },
    { name: "Deliveries", isNameHidden: true, cell: (webhook) => <a href={jobsPage({ queue: DELIVERIES, tag: `webhook:${webhook.id}` })}>Deliveries</a> },
    {
      name: "Actions",
      isNameHidden: true,
      cell: (webhook) =>
        may("webhooks:write") && (
          <div class="row-actions">
            <Button isSmall onClick={() => void attempt("Sending a test", `A test is on its way to ${webhook.name}`, () => tryWebhook(webhook.id))}>
              Send test
            </Button>
            <Button isSmall onClick={() => void toggle(webhook)}>
              {webhook.is_enabled ? "Turn off" : "Turn on"}
            </Button>
            <Button isSmall kind="danger" onClick={() => void remove(webhook)}>
              Remove
            </Button>
          </div>
        ),
    },
  ];
}
