// Filters of a list: the address holds them, these fields change it.
import { useEffect, useRef, useState } from "preact/hooks";
import { place, setQuery } from "../router";
import { Button } from "./button";
import { Icon } from "./icon";

const TYPING_MS = 250;

/** From the first page on. */
export function setFilter(word: string, value: string | null): void {
  setQuery({ [word]: value, cursor: null, focus: null }, { replace: word === "q" });
}

interface SearchProps {
  label: string;
  /** What is searched. */
  hint: string;
  value: string | undefined;
}

/** Words are a filter as they are typed; the key `/` leads here. */
export function Search({ label, hint, value = "" }: SearchProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => setFilter("q", text || null), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  useEffect(() => {
    if (place.value.query.get("focus") === "search") input.current?.focus();
  }, []);
  return (
    <div class="search">
      <Icon name="search" />
      <input ref={input} type="search" aria-label={label} placeholder={hint} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

interface PickProps {
  label: string;
  word: string;
  value: string | undefined;
  options: (readonly [value: string, name: string])[];
  any?: string;
}

export function Pick({ label, word, value = "", options, any = "any" }: PickProps) {
  return (
    <select aria-label={label} value={value} onChange={(event) => setFilter(word, event.currentTarget.value || null)}>
      <option value="">{label}: {any}</option>
      {options.map(([one, name]) => (
        <option key={one} value={one} selected={one === value}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** A typed word is a filter once it is entered; until then no other change of the page takes it away. */
export function Typed({ label, word, value = "" }: { label: string; word: string; value: string | undefined }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      class="filter-typed"
      aria-label={label}
      placeholder={label}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={(event) => setFilter(word, event.currentTarget.value || null)}
    />
  );
}

export function Chip({ word, name = word, value }: { word: string; name?: string; value: string | undefined }) {
  if (!value) return null;
  return (
    <span class="chip">
      {name} <code>{value}</code>
      <Button kind="quiet" isSmall icon="close" label={`Remove the filter ${name}`} onClick={() => setFilter(word, null)} />
    </span>
  );
}
