// The journal of a job or a task as it grows: what is done is not asked for again.
import { useRef } from "preact/hooks";
import { useLoad, type Loaded } from "./load";

interface Entry {
  place: number;
  state: string;
}

export interface JournalPage<E> {
  items: E[];
  next_place: number | null;
}

/** All of it; each reload reads from the first entry that may have changed. Another key is another journal. */
export function useJournal<E extends Entry>(key: string, read: (start: number, abort: AbortSignal) => Promise<JournalPage<E>>): Loaded<E[]> {
  const known = useRef<{ key: string; entries: E[] }>({ key, entries: [] });
  return useLoad(key, async (abort) => {
    let entries = known.current.key === key ? unchanging(known.current.entries) : [];
    for (let start: number | null = entries.length; start !== null; ) {
      const page: JournalPage<E> = await read(start, abort);
      entries = [...entries, ...page.items];
      start = page.next_place;
      // Page by page: a reload that comes in between goes on from here.
      known.current = { key, entries };
    }
    return entries;
  });
}

/** Those before the first that is missing or not done. */
function unchanging<E extends Entry>(entries: E[]): E[] {
  const first = entries.findIndex(({ place, state }, at) => place !== at || state !== "done");
  return first < 0 ? entries : entries.slice(0, first);
}
