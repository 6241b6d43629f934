// Loading what a page shows: first time, again when something changed, and what went wrong.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { AGAIN_MS, asProblem, type Problem } from "../api/problem";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | null;
  isLoading: boolean;
  reload: () => void;
}

interface State<T> {
  key: string;
  data?: T;
  problem: Problem | null;
  isLoading: boolean;
}

/** Load whenever `key` changes. What is shown stays until the new is there, unless the key is another. */
export function useLoad<T>(key: string, load: (abort: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<State<T>>({ key, problem: null, isLoading: true });
  const running = useRef<{ abort: AbortController; isAskedAgain: boolean } | null>(null);
  const latest = useRef({ key, load });
  latest.current = { key, load };

  const reload = useCallback((): void => {
    // To abort it would mean to show nothing for as long as changes come quicker than answers.
    if (running.current) {
      running.current.isAskedAgain = true;
      return;
    }
    const { key, load } = latest.current;
    const mine = { abort: new AbortController(), isAskedAgain: false };
    running.current = mine;
    const end = (change: (before: State<T>) => State<T>): void => {
      if (mine.abort.signal.aborted) return;
      running.current = null;
      setState(change);
      if (mine.isAskedAgain) reload();
    };
    load(mine.abort.signal).then(
      (data) => end(() => ({ key, data, problem: null, isLoading: false })),
      (error: unknown) => end((before) => without(before, key, asProblem(error))),
    );
  }, []);

  useEffect(() => {
    reload();
    return () => {
      running.current?.abort.abort();
      running.current = null;
    };
  }, [key, reload]);

  const { problem } = state;
  useEffect(() => {
    if (!problem?.isUnreachable) return;
    const timer = setTimeout(reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [problem, reload]);

  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    problem: isCurrent ? state.problem : null,
    isLoading: !isCurrent || state.isLoading,
    reload,
  };
}

/** What was shown stays, unless it is there no more. */
function without<T>(before: State<T>, key: string, problem: Problem): State<T> {
  const isKept = before.key === key && problem.status !== 404;
  return { ...(isKept ? before : { key }), problem, isLoading: false };
}
