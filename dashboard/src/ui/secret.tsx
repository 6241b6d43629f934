// What is shown once and never again: the text of a key, the secret of a webhook.
import { secret } from "../state/secret";
import { Button } from "./button";
import { Copy } from "./copy";
import { Dialog } from "./dialog";

export function SecretDialog() {
  const shown = secret.value;
  if (shown === null) return null;
  const close = (): void => {
    secret.value = null;
  };
  return (
    <Dialog title={shown.title} onClose={close} isWide isLasting>
      <p>Copy it now: this is the only time that it is shown.</p>
      <p class="secret">
        <code>{shown.text}</code>
        <Copy text={shown.text} label={shown.copies} />
      </p>
      <footer class="dialog-foot">
        <Button kind="main" onClick={close}>
          Done
        </Button>
      </footer>
    </Dialog>
  );
}
