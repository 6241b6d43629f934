// Pages by cursor: the address holds where one is, so that a page can be shared and the browser's back works.
import { count } from "../format";
import { place, setQuery } from "../router";
import { Button } from "./button";

/** From which page each cursor was reached: a cursor itself only leads on. */
const before = new Map<string, string | null>();

export function cursorHere(): string | null {
  return place.value.query.get("cursor");
}

/** Below a list that was read to its end, or as far as a page reads on by itself. */
export function MoreThanShown({ of: { items, next_cursor } }: { of: { items: unknown[]; next_cursor: string | null } }) {
  return next_cursor === null ? null : <p class="pager-end">The first {count(items.length)}; the API tells the others.</p>;
}

export function Pager({ next, shown }: { next: string | null; shown: string }) {
  const current = cursorHere();
  if (current === null && next === null) return <p class="pager-end">{shown}</p>;
  return (
    <nav class="pager" aria-label="Pages">
      <span>{shown}</span>
      <Button isSmall isDisabled={current === null} onClick={() => setQuery({ cursor: null })}>
        Newest
      </Button>
      <Button isSmall isDisabled={current === null} onClick={() => setQuery({ cursor: before.get(current ?? "") ?? null })}>
        Newer
      </Button>
      <Button
        isSmall
        isDisabled={next === null}
        onClick={() => {
          before.set(next ?? "", current);
          setQuery({ cursor: next });
        }}
      >
        Older
      </Button>
    </nav>
  );
}
