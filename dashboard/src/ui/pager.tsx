// Pages by cursor: the address holds where one is, so that a page can be shared and the browser's back works.
import { count } from "../format";
import { addressOf, place, setQuery } from "../router";
import { Button } from "./button";

const KEY = "bullpen.pages";
const MOST = 500;

/** From which page each was reached, by address: a cursor itself only leads on. It outlives a reload. */
const before = new Map<string, string | null>(stored());

function stored(): [string, string | null][] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as [string, string | null][];
  } catch {
    return [];
  }
}

function remember(address: string, cursor: string | null): void {
  before.set(address, cursor);
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...before].slice(-MOST)));
  } catch {
    // Without storage it lasts as long as the page.
  }
}

function addressHere(): string {
  return addressOf(place.value.path, place.value.query);
}

export function cursorHere(): string | null {
  return place.value.query.get("cursor");
}

/** Below a list that was read to its end, or as far as a page reads on by itself. */
export function MoreThanShown({ of: { items, next_cursor } }: { of: { items: unknown[]; next_cursor: string | null } }) {
  return next_cursor === null ? null : <p class="pager-end">The first {count(items.length)}; the API tells the others.</p>;
}

export function Pager({ next, shown }: { next: string | null; shown: string }) {
  const current = cursorHere();
  // Nothing tells what comes before a page that was opened by its address.
  const newer = before.get(addressHere());
  if (current === null && next === null) return <p class="pager-end">{shown}</p>;
  return (
    <nav class="pager" aria-label="Pages">
      <span>{shown}</span>
      <Button isSmall isDisabled={current === null} onClick={() => setQuery({ cursor: null })}>
        Newest
      </Button>
      <Button isSmall isDisabled={newer === undefined} onClick={() => setQuery({ cursor: newer ?? null })}>
        Newer
      </Button>
      <Button
        isSmall
        isDisabled={next === null}
        onClick={() => {
          setQuery({ cursor: next });
          remember(addressHere(), current);
        }}
      >
        Older
      </Button>
    </nav>
  );
}
