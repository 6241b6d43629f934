// Loading what a page shows: first time, again when something changed, and what went wrong.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | null;
  isLoading: boolean;
  reload: () => void;
  /** Show this at once; the next load has the last word. */
  patch: (change: (data: T) => T) => void;
}

/** Load whenever `key` changes. What is shown stays until the new is there, unless the key is another. */
export function useLoad<T>(key: string, load: (abort: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; problem: Problem | null; isLoading: boolean }>({
    key,
    problem: null,
    isLoading: true,
  });
  const running = useRef<AbortController | null>(null);
  const latest = useRef(load);
  latest.current = load;

  const reload = useCallback(() => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    latest.current(abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) setState({ key, data, problem: null, isLoading: false });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setState((before) => ({ ...(before.key === key ? before : { key }), problem: asProblem(error), isLoading: false }));
      },
    );
  }, [key]);

  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [reload]);

  const patch = useCallback((change: (data: T) => T) => {
    setState((before) => (before.data === undefined ? before : { ...before, data: change(before.data) }));
  }, []);

  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    problem: isCurrent ? state.problem : null,
    isLoading: !isCurrent || state.isLoading,
    reload,
    patch,
  };
}
