// What is shown where there is nothing to show: not yet, nothing, or an error; each says what to do next.
import type { ComponentChildren } from "preact";
import type { Problem } from "../api/problem";
import { Button } from "./button";

export function Skeleton({ lines = 4, isTall = false }: { lines?: number; isTall?: boolean }) {
  return (
    <div class={isTall ? "skeleton skeleton-tall" : "skeleton"} role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        <span key={at} />
      ))}
    </div>
  );
}

interface EmptyProps {
  title: string;
  children?: ComponentChildren;
  action?: ComponentChildren;
}

export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div class="note">
      <svg class="note-picture" width="56" height="40" viewBox="0 0 56 40" aria-hidden="true">
        <rect x="1" y="5" width="54" height="8" rx="4" />
        <rect x="1" y="17" width="38" height="8" rx="4" />
        <rect x="1" y="29" width="22" height="8" rx="4" />
      </svg>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

const NEXT: Record<string, string> = {
  forbidden: "Your role does not allow this. Ask an admin for another one.",
  "job-missing": "It may have been removed, or pruned after it was done.",
  "record-missing": "It may have been removed, or is another tenant's.",
  "queue-missing": "A queue exists from its first job on.",
  "not-found": "Check the address, or go back to the overview.",
};

export function ProblemNote({ problem, onRetry }: { problem: Problem; onRetry?: (() => void) | undefined }) {
  return (
    <div class="note note-problem" role="alert">
      <h2>{problem.title}</h2>
      <p>{problem.detail}</p>
      {NEXT[problem.code] && <p>{NEXT[problem.code]}</p>}
      <p class="note-code">
        <code>{problem.code}</code>
        {problem.requestId && <> · request <code>{problem.requestId}</code></>}
      </p>
      {onRetry && (
        <Button icon="retry" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** A thin line above data that could not be refreshed. */
export function StaleLine({ problem }: { problem: Problem | null }) {
  if (!problem) return null;
  return (
    <p class="stale" role="status">
      Not up to date: {problem.detail || problem.title} <code>{problem.code}</code>
    </p>
  );
}
