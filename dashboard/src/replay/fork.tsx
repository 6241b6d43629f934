// A new run that has the first steps of another: with something changed, or with the recorded results of its tools.
import { runPage } from "../addresses";
import { fork, type RunTask, type TaskStep } from "../api/runs";
import { navigate } from "../router";
import { say } from "../state/toasts";
import { Dialog } from "../ui/dialog";
import { Check, Form, LongText, type FormValues } from "../ui/form";
import { nameOf } from "./scrubber";

interface ForkDialogProps {
  task: RunTask;
  /** The step looked at; none where only the prompt was said. */
  step: TaskStep | undefined;
  onClose: () => void;
}

export function ForkDialog({ task, step, onClose }: ForkDialogProps) {
  const before = textOf(task, step);
  async function send(values: FormValues): Promise<void> {
    const text = values.secret("text");
    const isChanged = text !== before;
    const from = {
      at: step === undefined ? 0 : step.place + 1,
      ...(isChanged && step === undefined ? { prompt: text } : {}),
      ...(isChanged && step !== undefined ? { edits: [{ place: step.place, text }] } : {}),
      dry: values.isOn("dry"),
    };
    const made = await fork(task.task_id, from, values.key);
    say(made.note === null ? "The fork is on its way" : `The fork ${made.note}`);
    onClose();
    navigate(runPage(made.run_id));
  }
  return (
    <Dialog title={`Fork after ${step === undefined ? "the prompt" : nameOf(step)}`} onClose={onClose} isWide>
      <Form verb="Fork" onCancel={onClose} onSend={send}>
        <p>A new run has all steps up to here without doing or paying them again, and goes on by itself. This run stays as it is.</p>
        <LongText label={labelOf(step)} name="text" value={before} rows={8} hint="change it to see what would have come of that" />
        <Check label="Dry" name="dry" hint="tools are not called: calls that this run made get its recorded results, so nothing has an effect" />
      </Form>
    </Dialog>
  );
}

function labelOf(step: TaskStep | undefined): string {
  if (step === undefined) return "Prompt";
  return step.what === "llm" ? "What the model said" : `What ${step.name} answered`;
}

function textOf(task: RunTask, step: TaskStep | undefined): string {
  if (step === undefined) return task.prompt;
  return step.text ?? "";
}
