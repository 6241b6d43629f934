// Where one begins: the overview, or the first page that one's role may see.
import { useEffect } from "preact/hooks";
import { entriesHere } from "../entries";
import { navigate } from "../router";
import { OverviewPage } from "./overview";

export function HomePage() {
  const first = entriesHere()[0]?.address ?? "/settings";
  useEffect(() => {
    if (first !== "/") navigate(first, { replace: true });
  }, [first]);
  return first === "/" ? <OverviewPage /> : null;
}
