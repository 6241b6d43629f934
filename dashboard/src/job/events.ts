// What happens to one job while one looks at it.
import { useEffect, useRef } from "preact/hooks";
import { url } from "../api/client";
import type { JobRef } from "../api/wire";
import { openStream } from "../live/stream";

const KINDS = [
  "added",
  "waiting",
  "delayed",
  "waiting-children",
  "active",
  "progress",
  "completed",
  "failed",
  "retries-exhausted",
  "stalled",
  "cancelling",
  "removed",
  "gap",
] as const;

export function useJobEvents({ queue, id }: JobRef, onEvent: () => void): void {
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(
    () =>
      openStream(url("/events", { queue, job: id }), {
        kinds: KINDS,
        onEvent: () => latest.current(),
        // What happened before it was there is not told.
        onState: (state) => {
          if (state === "live") latest.current();
        },
      }),
    [queue, id],
  );
}
