// Fields with labels, and a form that shows the server's refusal beside the field it is about.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import { randomKey } from "../api/client";
import { asProblem, Problem } from "../api/problem";
import type { Json } from "../api/wire";
import { Button } from "./button";

/** What the server refused the form for, where that is about one of its fields. */
const Refusal = createContext<Problem | null>(null);

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
    <Labelled label={label} name={name} hint={hint}>
      {(given) => (
        <input
          {...given}
          type={type as "text"}
          defaultValue={value === null || value === undefined ? "" : String(value)}
          required={isRequired}
          autocomplete={autocomplete}
          {...(min === undefined ? {} : { min })}
        />
      )}
    </Labelled>
  );
}

export function Choice({ label, name, options, value }: { label: string; name: string; options: readonly string[]; value?: string }) {
  return (
    <Labelled label={label} name={name}>
      {(given) => (
        <select {...given}>
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
    <Labelled label={label} name={name} hint={hint}>
      {(given) => <textarea {...given} rows={rows} spellcheck={false} defaultValue={value} />}
    </Labelled>
  );
}

/** Any number of files of the reader's own. */
export function Files({ label, name, hint }: { label: string; name: string; hint?: string }) {
  return (
    <Labelled label={label} name={name} hint={hint}>
      {(given) => <input {...given} type="file" multiple />}
    </Labelled>
  );
}

/** What ties a field to its label, its hint and its refusal. */
interface Given {
  id: string;
  name: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

interface LabelledProps {
  label: string;
  name: string;
  hint?: string | undefined;
  children: (given: Given) => ComponentChildren;
}

/** The hint and the refusal describe the field, and are no part of its name. */
function Labelled({ label, name, hint, children }: LabelledProps) {
  const id = useId();
  const problem = useContext(Refusal);
  const isRefused = problem?.field === name;
  const described = [isRefused && `${id}-problem`, hint && `${id}-hint`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, name, "aria-describedby": described || undefined, "aria-invalid": isRefused || undefined })}
      {isRefused && (
        <small id={`${id}-problem`} class="is-bad" role="alert">
          {wordsOf(problem)} <code>{problem.code}</code>
        </small>
      )}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}

/** Fields that few need. What is wrong in one of them unfolds it. */
export function Folded({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details class="folded form-folded" onInvalidCapture={(event) => (event.currentTarget.open = true)}>
      <summary>{title}</summary>
      {children}
    </details>
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
  constructor(
    private readonly data: FormData,
    /** The same for as long as the same is sent: what was done is not done twice because its answer was lost. */
    readonly key: string,
  ) {}

  /** Whether the same was typed and chosen. */
  isLike(other: FormValues): boolean {
    return this.words() === other.words();
  }

  private words(): string {
    const told = ([name, value]: [string, FormDataEntryValue]) => [name, value instanceof File ? [value.name, value.size, value.lastModified] : value];
    return JSON.stringify([...this.data].map(told));
  }

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

/** The server begins with the name of the field, which the reader sees already. */
function wordsOf(problem: Problem): string {
  const words = problem.detail || problem.title;
  return problem.field !== null && words.startsWith(`${problem.field}: `) ? words.slice(problem.field.length + 2) : words;
}

function fieldIn(form: HTMLFormElement | null, name: string | null): HTMLElement | null {
  const found = name === null ? null : form?.elements.namedItem(name);
  return found instanceof HTMLElement ? found : null;
}

export function Form({ verb, isDangerous = false, onSend, onCancel, children }: FormProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isSending, setSending] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const unanswered = useRef<FormValues | null>(null);
  const refused = fieldIn(form.current, problem?.field ?? null);
  useEffect(() => {
    const folded = refused?.closest("details");
    if (folded) folded.open = true;
    refused?.focus();
  }, [problem]);

  async function send(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    setSending(true);
    setProblem(null);
    try {
      const values = new FormValues(new FormData(event.target as HTMLFormElement), randomKey());
      if (!unanswered.current?.isLike(values)) unanswered.current = values;
      await onSend(unanswered.current);
      unanswered.current = null;
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setSending(false);
    }
  }

  return (
    <form ref={form} class="form" onSubmit={(event) => void send(event as SubmitEvent)}>
      <Refusal.Provider value={problem}>{children}</Refusal.Provider>
      {problem && refused === null && (
        <p class="form-problem" role="alert">
          {problem.field && <b>{problem.field}: </b>}
          {wordsOf(problem)} {problem.code === "credits-short" && "Deposit some on the page Credits, or ask an admin to. "}
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
