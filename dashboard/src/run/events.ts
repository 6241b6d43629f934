// The log of one run from its first line on, and then as it goes on: without gap, and nothing twice.
import { useEffect, useRef, useState } from "preact/hooks";
import { streamOf, type RunEvent } from "../api/runs";
import { openStream, type StreamState } from "../live/stream";
import { newStory, tell, type Story } from "./story";

const KINDS = [
  "job_started",
  "job_progress",
  "job_completed",
  "job_failed",
  "job_cancelled",
  "job_retrying",
  "job_suspended",
  "step_started",
  "step_completed",
  "thinking",
  "tool_started",
  "tool_progress",
  "tool_completed",
  "tool_failed",
  "llm_started",
  "llm_streaming",
  "llm_completed",
  "artifact_created",
  "checkpoint_saved",
] as const;

/** There is nothing more to wait for. */
const END = "end";

/** What changes more than a few words on the page: the run itself is asked for anew. */
const TURNS = new Set<string>(KINDS.filter((kind) => !["llm_streaming", "tool_progress", "thinking", "job_progress", "llm_started", "step_started"].includes(kind)));

export interface Watched {
  /** By task. */
  stories: ReadonlyMap<string, Story>;
  state: StreamState;
  /** The run is over, and its last line was told. */
  isWhole: boolean;
}

/** From when the run is known to be there until its last line was told. */
export function useRunEvents(id: string, isThere: boolean, onTurn: (kind: string) => void): Watched {
  const [watched, setWatched] = useState<Watched>({ stories: new Map(), state: "opening", isWhole: false });
  const stories = useRef(new Map<string, Story>());
  const last = useRef(0);
  const latest = useRef(onTurn);
  latest.current = onTurn;

  useEffect(() => {
    if (!isThere) return;
    let frame = 0;
    let state: StreamState = "opening";
    let isWhole = false;
    // A log of thousands of lines comes at once: it is shown once.
    const show = (): void => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setWatched({ stories: new Map(stories.current), state, isWhole });
      });
    };
    const close = openStream(() => streamOf(id, last.current), {
      kinds: [...KINDS, END],
      onState: (now) => {
        state = now;
        show();
      },
      onEvent: (kind, data) => {
        if (kind === END) {
          isWhole = true;
          show();
          // Whoever comes again after the last line is told of nothing else.
          latest.current(END);
          return close();
        }
        const event = data as RunEvent | null;
        if (event === null || event.number <= last.current) return;
        last.current = event.number;
        const story = stories.current.get(event.task_id) ?? newStory();
        stories.current.set(event.task_id, story);
        tell(story, { ...event, kind });
        show();
        if (TURNS.has(kind)) latest.current(kind);
      },
    });
    return () => {
      cancelAnimationFrame(frame);
      close();
    };
  }, [id, isThere]);
  return watched;
}
