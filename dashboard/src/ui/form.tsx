// Fields with labels, and a form that shows the server's refusal beside the field it is about.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { asProblem, Problem } from "../api/problem";
import type { Json } from "../api/wire";
import { Button } from "./button";

interface FieldProps {
  label: string;
  name: string;
  value?: string | number | null | undefined;
  hint?: string;
  type?: "text" | "number" | "password" | "datetime-local";
  isRequired?: boolean;
  autocomplete?: string;
  min?: number;
}

export function Field({ label, name, value, hint, type = "text", isRequired = false, autocomplete = "off", min }: FieldProps) {
  return (
    <Labelled label={label} hint={hint}>
      {(id, hintId) => (
        <input
          id={id}
          type={type as "text"}
          name={name}
          defaultValue={value === null || value === undefined ? "" : String(value)}
          required={isRequired}
          autocomplete={autocomplete}
          aria-describedby={hintId}
          {...(min === undefined ? {} : { min })}
        />
      )}
    </Labelled>
  );
}

export function Choice({ label, name, options, value }: { label: string; name: string; options: readonly string[]; value?: string }) {
  return (
    <Labelled label={label}>
      {(id) => (
        <select id={id} name={name}>
          {options.map((option) => (
            <option key={option} value={option} selected={option === value}>
              {option}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

interface CheckProps {
  label: string;
  name: string;
  isOn?: boolean;
  hint?: string;
}

export function Check({ label, name, isOn = false, hint }: CheckProps) {
  return (
    <label class="choice">
      <input type="checkbox" name={name} defaultChecked={isOn} />
      <span>
        {label}
        {hint && <small class="muted">{hint}</small>}
      </span>
    </label>
  );
}

interface LongTextProps {
  label: string;
  name: string;
  value: string;
  hint?: string;
  rows?: number;
}

export function LongText({ label, name, value, hint, rows = 10 }: LongTextProps) {
  return (
    <Labelled label={label} hint={hint}>
      {(id, hintId) => <textarea id={id} name={name} rows={rows} spellcheck={false} defaultValue={value} aria-describedby={hintId} />}
    </Labelled>
  );
}

/** Any number of files of the reader's own. */
export function Files({ label, name, hint }: { label: string; name: string; hint?: string }) {
  return (
    <Labelled label={label} hint={hint}>
      {(id, hintId) => <input id={id} type="file" name={name} multiple aria-describedby={hintId} />}
    </Labelled>
  );
}

interface LabelledProps {
  label: string;
  hint?: string | undefined;
  children: (id: string, hintId: string | undefined) => ComponentChildren;
}

/** The hint describes the field, and is no part of its name. */
function Labelled({ label, hint, children }: LabelledProps) {
  const id = useId();
  const hintId = hint ? `${id}-hint` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, hintId)}
      {hint && <small id={hintId}>{hint}</small>}
    </div>
  );
}

interface FormProps {
  verb: string;
  isDangerous?: boolean;
  onSend: (values: FormValues) => Promise<void>;
  onCancel?: () => void;
  children: ComponentChildren;
}

/** What was typed, read by name; an empty field is "not given". */
export class FormValues {
  constructor(private readonly data: FormData) {}

  text(name: string): string | null {
    const value = this.data.get(name);
    return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
  }

  number(name: string): number | null {
    const text = this.text(name);
    return text === null ? null : Number(text);
  }

  /** Those that were chosen; a field without a choice has one without a name. */
  files(name: string): File[] {
    return this.data.getAll(name).filter((one): one is File => one instanceof File && one.name !== "");
  }

  isOn(name: string): boolean {
    return this.data.has(name);
  }

  /** Of a password: exactly as typed. */
  secret(name: string): string {
    const value = this.data.get(name);
    return typeof value === "string" ? value : "";
  }
}

/** The JSON of a field; a Problem that names the field if it is none. */
export function jsonFrom(values: FormValues, name: string): Json {
  try {
    return JSON.parse(values.secret(name) || "null") as Json;
  } catch (error) {
    throw new Problem(0, "not-json", "This is no JSON", error instanceof Error ? error.message : "", name);
  }
}

export function Form({ verb, isDangerous = false, onSend, onCancel, children }: FormProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isSending, setSending] = useState(false);

  async function send(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    setSending(true);
    setProblem(null);
    try {
      await onSend(new FormValues(new FormData(event.target as HTMLFormElement)));
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setSending(false);
    }
  }

  return (
    <form class="form" onSubmit={(event) => void send(event as SubmitEvent)}>
      {children}
      {problem && (
        <p class="form-problem" role="alert">
          {problem.field && <b>{problem.field}: </b>}
          {problem.detail || problem.title} {problem.code === "credits-short" && "Deposit some on the page Credits, or ask an admin to. "}
          <code>{problem.code}</code>
        </p>
      )}
      <footer class="dialog-foot">
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button kind={isDangerous ? "danger" : "main"} submits isDisabled={isSending}>
          {verb}
        </Button>
      </footer>
    </form>
  );
}
