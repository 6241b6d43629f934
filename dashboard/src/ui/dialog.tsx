// Questions that stop everything else: confirmation, and forms.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  isWide?: boolean;
  /** Neither Escape nor a click beside it closes it: what it shows would be lost. */
  isLasting?: boolean;
}

export function Dialog({ title, onClose, children, isWide = false, isLasting = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isPressedBeside = useRef(false);
  useEffect(() => {
    dialog.current?.showModal();
    // The browser would begin with the cross in the corner.
    dialog.current?.querySelector<HTMLElement>("input, textarea, select")?.focus();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={isWide ? "dialog dialog-wide" : "dialog"}
      aria-label={title}
      onCancel={(event) => isLasting && event.preventDefault()}
      // Browsers close it at the second Escape whatever one says.
      onClose={() => (isLasting ? dialog.current?.showModal() : onClose())}
      onPointerDown={(event) => (isPressedBeside.current = isBeside(event))}
      // Whoever selects text may let go of it beside the dialog.
      onClick={(event) => !isLasting && isPressedBeside.current && isBeside(event) && onClose()}
    >
      <header class="dialog-head">
        <h2>{title}</h2>
        {!isLasting && <Button kind="quiet" icon="close" label="Close" isSmall onClick={onClose} />}
      </header>
      {children}
    </dialog>
  );
}

/** The padding of a dialog and what lies behind it are the same element. */
function isBeside({ target, currentTarget, clientX, clientY }: MouseEvent & { currentTarget: HTMLDialogElement }): boolean {
  const { left, right, top, bottom } = currentTarget.getBoundingClientRect();
  return target === currentTarget && (clientX < left || clientX > right || clientY < top || clientY > bottom);
}

interface Question {
  title: string;
  text: ComponentChildren;
  verb: string;
  isDangerous?: boolean;
  /** To be typed before it can be done; for what cannot be taken back at all. */
  typed?: string;
}

const asked = signal<{ question: Question; answer: (yes: boolean) => void } | null>(null);

export function confirm(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    asked.value = {
      question,
      answer: (yes) => {
        asked.value = null;
        resolve(yes);
      },
    };
  });
}

export function Confirmation() {
  const open = asked.value;
  return open && <ConfirmDialog question={open.question} answer={open.answer} />;
}

function ConfirmDialog({ question, answer }: { question: Question; answer: (yes: boolean) => void }) {
  const [typed, setTyped] = useState("");
  const isReady = !question.typed || typed === question.typed;
  return (
    <Dialog title={question.title} onClose={() => answer(false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) answer(true);
        }}
      >
        <p>{question.text}</p>
        {question.typed && (
          <label class="field">
            <span>
              Type <code>{question.typed}</code> to go on
            </span>
            <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" />
          </label>
        )}
        <footer class="dialog-foot">
          <Button onClick={() => answer(false)}>Cancel</Button>
          <Button kind={question.isDangerous ? "danger" : "main"} submits isDisabled={!isReady}>
            {question.verb}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
