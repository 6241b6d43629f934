import { deposit } from "../api/credits";
import { say } from "../state/toasts";
import { Dialog } from "../ui/dialog";
import { Field, Form, type FormValues } from "../ui/form";

interface DepositDialogProps {
  tenant: string | null;
  onClose: () => void;
}

export function DepositDialog({ tenant, onClose }: DepositDialogProps) {
  async function send(values: FormValues): Promise<void> {
    const to = values.text("tenant") ?? "";
    const amount = values.number("credits") ?? 0;
    const memo = values.text("memo");
    await deposit({ tenant: to, credits: amount, ...(memo === null ? {} : { memo }) }, values.key);
    say(`${amount} credits are in the purse of ${to}`);
    onClose();
  }
  return (
    <Dialog title="Deposit credits" onClose={onClose}>
      <Form verb="Deposit" onCancel={onClose} onSend={send}>
        <Field label="Tenant" name="tenant" value={tenant} isRequired />
        <Field label="Credits" name="credits" type="number" min={1} isRequired hint="whole credits" />
        <Field label="Memo" name="memo" hint="stands in the statement" />
      </Form>
    </Dialog>
  );
}
