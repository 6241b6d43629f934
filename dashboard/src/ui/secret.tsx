// What is shown once and never again: the text of a key, the secret of a webhook.
import { Button } from "./button";
import { Copy } from "./copy";
import { Dialog } from "./dialog";

interface SecretProps {
  title: string;
  text: string;
  copies: string;
  onClose: () => void;
}

export function SecretDialog({ title, text, copies, onClose }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <p>Copy it now: this is the only time that it is shown.</p>
      <p class="secret">
        <code>{text}</code>
        <Copy text={text} label={copies} />
      </p>
      <footer class="dialog-foot">
        <Button kind="main" onClick={onClose}>
          Done
        </Button>
      </footer>
    </Dialog>
  );
}
