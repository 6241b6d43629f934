// The three faces of loaded data, in one place.
import type { ComponentChildren } from "preact";
import type { Loaded } from "../state/load";
import { ProblemNote, Skeleton, StaleLine } from "./notes";

interface ViewProps<T> {
  of: Loaded<T>;
  lines?: number;
  children: (data: T) => ComponentChildren;
}

export function View<T>({ of, lines = 6, children }: ViewProps<T>) {
  if (of.data === undefined) {
    return of.problem ? <ProblemNote problem={of.problem} onRetry={of.reload} /> : <Skeleton lines={lines} />;
  }
  return (
    <>
      <StaleLine problem={of.problem} />
      {children(of.data)}
    </>
  );
}
