import { runPage } from "../addresses";
import { addInput, submit } from "../api/runs";
import { navigate } from "../router";
import { me } from "../state/session";
import { say } from "../state/toasts";
import { Dialog } from "../ui/dialog";
import { Field, Files, Form, LongText, type FormValues } from "../ui/form";
import { LimitFields, limitsFrom } from "./limits";

export function NewRunDialog({ onClose }: { onClose: () => void }) {
  async function send(values: FormValues): Promise<void> {
    const tenant = values.text("tenant");
    const workspace = values.text("workspace");
    const model = values.text("model");
    const prompt = values.text("prompt") ?? "";
    // Not before there is something to do with them.
    const given = prompt ? await Promise.all(values.files("files").map((file, at) => addInput(file, tenant, `${values.key}-${at}`))) : [];
    const run = {
      prompt,
      files: given.map((file) => file.id),
      ...(tenant === null ? {} : { tenant }),
      ...(workspace === null ? {} : { workspace }),
      ...(model === null ? {} : { model }),
      ...limitsFrom(values),
    };
    const submitted = await submit(run, values.key);
    say("The run waits for a worker");
    onClose();
    navigate(runPage(submitted.run_id));
  }
  return (
    <Dialog title="New run" onClose={onClose} isWide>
      <Form verb="Start" onCancel={onClose} onSend={send}>
        <LongText label="Prompt" name="prompt" value="" rows={6} hint="What the agent is to do." />
        <Files label="Files" name="files" hint="The agent finds them in /inputs." />
        <div class="form-row">
          {me.value?.tenant === null && <Field label="Tenant" name="tenant" hint="who pays; empty: default" />}
          <Field label="Workspace" name="workspace" hint="a part of the tenant; empty: none" />
          <Field label="Model" name="model" hint="empty: the usual one" />
        </div>
        <LimitFields />
      </Form>
    </Dialog>
  );
}
