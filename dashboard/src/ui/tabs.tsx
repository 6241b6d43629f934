import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface Tab {
  id: string;
  name: ComponentChildren;
  count?: string;
  state?: string;
}

interface TabsProps {
  label: string;
  tabs: Tab[];
  current: string;
  onPick: (id: string) => void;
  /** In rows, where their names are long and any number of them may be there. */
  wraps?: boolean;
}

/** Ways to look at one thing; each has an address, so they are links in all but form. */
export function Tabs({ label, tabs, current, onPick, wraps = false }: TabsProps) {
  const chosen = useRef<HTMLButtonElement>(null);
  // On a phone the row is wider than the page: what is looked at must be in sight.
  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current]);
  return (
    <div class={wraps ? "tabs tabs-wrapped" : "tabs"} role="group" aria-label={label}>
      {tabs.map((tab) => (
        <button
          key={tab.id}
          ref={tab.id === current ? chosen : null}
          type="button"
          class={tab.state ? `tab state-${tab.state}` : "tab"}
          aria-pressed={tab.id === current}
          onClick={() => onPick(tab.id)}
        >
          {tab.state && <i class="dot" />}
          {tab.name}
          {tab.count !== undefined && <span class="tab-count">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}
