// Changing a job that has not run, and sending a signal to one that waits for it.
import { change, signal } from "../api/jobs";
import type { Job } from "../api/wire";
import { say } from "../state/toasts";
import { Dialog } from "../ui/dialog";
import { Field, Form, jsonFrom, LongText, type FormValues } from "../ui/form";

interface JobDialogProps {
  job: Job;
  onClose: () => void;
}

export function EditDialog({ job, onClose }: JobDialogProps) {
  async function save(values: FormValues): Promise<void> {
    const data = jsonFrom(values, "data");
    const priority = values.number("priority");
    const delay = values.number("delay");
    await change(job, {
      ...(JSON.stringify(data) === JSON.stringify(job.data) ? {} : { data }),
      ...(priority === null || priority === job.priority ? {} : { priority }),
      ...(delay === null ? {} : { delay }),
    });
    say("The job is changed");
    onClose();
  }
  return (
    <Dialog title={`Edit ${job.name}`} onClose={onClose} isWide>
      <Form verb="Save" onCancel={onClose} onSend={save}>
        <LongText label="Data (JSON)" name="data" value={JSON.stringify(job.data, null, 2)} />
        <div class="form-row">
          <Field label="Priority" name="priority" type="number" min={0} value={job.priority} hint="lower runs first; 0 is none" />
          {job.state === "delayed" && <Field label="Delay from now, seconds" name="delay" type="number" min={0} hint="empty: as it is" />}
        </div>
      </Form>
    </Dialog>
  );
}

export function SignalDialog({ job, onClose }: JobDialogProps) {
  async function send(values: FormValues): Promise<void> {
    const name = values.text("name") ?? "";
    await signal(job, name, jsonFrom(values, "value"), values.key);
    say(`The signal ${name} is sent`);
    onClose();
  }
  return (
    <Dialog title="Send a signal" onClose={onClose} isWide>
      <Form verb="Send" onCancel={onClose} onSend={send}>
        <Field label="Signal" name="name" value={job.parked?.[0] ?? ""} isRequired hint={job.parked?.length ? `It waits for: ${job.parked.join(", ")}` : "It waits for none now; the signal is kept for it."} />
        <LongText label="Value (JSON)" name="value" value="null" />
      </Form>
    </Dialog>
  );
}
