// The end of a list that may be very long, and what was before it on demand.
import type { ComponentChild } from "preact";
import { useState } from "preact/hooks";
import { count } from "../format";
import { Button } from "./button";

const AT_ONCE = 200;

/** From which of so many on they are shown, and the button that shows more. */
export function useEarlier(howMany: number): { first: number; button: ComponentChild } {
  const [most, setMost] = useState(AT_ONCE);
  const first = Math.max(0, howMany - most);
  const button = first > 0 && (
    <Button isSmall onClick={() => setMost(most + AT_ONCE)}>
      Show {count(Math.min(AT_ONCE, first))} of {count(first)} earlier
    </Button>
  );
  return { first, button };
}
