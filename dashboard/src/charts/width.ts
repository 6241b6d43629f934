import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** How wide an element is, so that what is drawn in it keeps its line widths and letters. */
export function useWidth(element: RefObject<HTMLElement | null>, first: number): number {
  const [width, setWidth] = useState(first);
  useEffect(() => {
    if (!element.current) return;
    const watcher = new ResizeObserver(([entry]) => entry && setWidth(Math.round(entry.contentRect.width)));
    watcher.observe(element.current);
    return () => watcher.disconnect();
  }, [element]);
  return width;
}
