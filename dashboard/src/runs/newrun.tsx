import { runPage } from "../addresses";
import { addInput, submit } from "../api/runs";
import { navigate } from "../router";
import { me } from "../state/session";
import { say } from "../state/toasts";
import { Dialog } from "../ui/dialog";
import { Field, Files, Form, LongText, type FormValues } from "../ui/form";

export function NewRunDialog({ onClose }: { onClose: () => void }) {
  async function send(values: FormValues): Promise<void> {
    const tenant = values.text("tenant");
    const model = values.text("model");
    const most = values.number("max_credits");
    const prompt = values.text("prompt") ?? "";
    // Not before there is something to do with them.
    const given = prompt ? await Promise.all(values.files("files").map((file) => addInput(file, tenant))) : [];
    const submitted = await submit({
      prompt,
      files: given.map((file) => file.id),
      ...(tenant === null ? {} : { tenant }),
      ...(model === null ? {} : { model }),
      ...(most === null ? {} : { max_credits: most }),
    });
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
          <Field label="Model" name="model" hint="empty: the usual one" />
          <Field label="Most credits" name="max_credits" type="number" min={1} hint="empty: twice what it is expected to cost" />
        </div>
      </Form>
    </Dialog>
  );
}
