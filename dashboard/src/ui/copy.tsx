import { useState } from "preact/hooks";
import { say } from "../state/toasts";
import { Button } from "./button";

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  async function copy(event: MouseEvent): Promise<void> {
    const button = event.currentTarget as HTMLButtonElement;
    if (!(await isCopied(text, button))) {
      say("Copying did not work", { tone: "bad", detail: "The browser does not allow it here: select the text and copy it by hand" });
      return;
    }
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  }
  return <Button kind="quiet" isSmall icon={isDone ? "check" : "copy"} label={isDone ? "Copied" : label} onClick={(event) => void copy(event)} />;
}

async function isCopied(text: string, button: HTMLButtonElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP there is no clipboard, and elsewhere it may be forbidden.
    return isCopiedAsSelected(text, button);
  }
}

function isCopiedAsSelected(text: string, button: HTMLButtonElement): boolean {
  const field = document.createElement("textarea");
  field.className = "only-heard";
  field.value = text;
  // Beside the button: what lies outside an open dialog cannot be selected.
  button.after(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  button.focus();
  return isDone;
}
