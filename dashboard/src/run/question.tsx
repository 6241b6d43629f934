// A worker died while a tool ran that must not run twice: somebody says what became of the call.
import { useState } from "preact/hooks";
import { answer, type RunTask } from "../api/runs";
import { may } from "../state/session";
import { say } from "../state/toasts";
import { Check, Form, LongText, type FormValues } from "../ui/form";
import { Card } from "../ui/page";
import { Payload } from "./words";

export function QuestionCard({ task, onAnswered }: { task: RunTask; onAnswered: () => void }) {
  const { question } = task;
  if (question === null || task.state !== "suspended") return null;
  return (
    <Card title={`Did the call of ${question.tool} take place?`} aside={<span class="badge tone-prioritized">Needs an answer</span>}>
      <p class="question-text">
        Its worker died while it ran, and it must not be made twice. Look where it would have had its effect, and say what you found: the run
        goes on from there.
      </p>
      <Payload text={question.arguments} label="input of the call" />
      {may("tasks:answer") ? <AnswerForm task={task} onAnswered={onAnswered} /> : <p class="muted">Your role does not allow to answer. Ask an operator.</p>}
    </Card>
  );
}

function AnswerForm({ task, onAnswered }: { task: RunTask; onAnswered: () => void }) {
  const [hasHappened, setHappened] = useState(true);
  async function send(values: FormValues): Promise<void> {
    await answer(task.task_id, hasHappened ? { result: values.text("result") ?? "", is_error: values.isOn("is_error") } : { again: true });
    say(hasHappened ? "The run goes on with this result" : "The call is made again");
    onAnswered();
  }
  return (
    <Form verb="Answer" onSend={send}>
      <fieldset class="choices">
        <legend class="only-heard">What became of the call</legend>
        <label class="choice">
          <input type="radio" name="how" checked={hasHappened} onChange={() => setHappened(true)} />
          <span>
            It happened, with this result<small>The agent reads it as the tool's answer.</small>
          </span>
        </label>
        <label class="choice">
          <input type="radio" name="how" checked={!hasHappened} onChange={() => setHappened(false)} />
          <span>
            It did not happen: make it again<small>The tool is called once more with the same input.</small>
          </span>
        </label>
      </fieldset>
      {hasHappened && (
        <>
          <LongText label="Result" name="result" value="" rows={3} />
          <Check label="It failed" name="is_error" hint="the agent is told that the result is an error" />
        </>
      )}
    </Form>
  );
}
