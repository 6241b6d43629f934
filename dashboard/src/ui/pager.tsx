// Pages by cursor: the address holds where one is, so that a page can be shared and the browser's back works.
import { place, setQuery } from "../router";
import { Button } from "./button";

/** From which page each cursor was reached: a cursor itself only leads on. */
const before = new Map<string, string | null>();

export function cursorHere(): string | null {
  return place.value.query.get("cursor");
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
