// A list of further actions behind one button.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icon";

export interface MenuItem {
  name: string;
  isDangerous?: boolean;
  onPick: () => void;
}

export function Menu({ label, items }: { label: string; items: MenuItem[] }) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (!isOpen) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const close = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", close);
    return () => removeEventListener("pointerdown", close);
  }, [isOpen]);

  function onKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      setOpen(false);
      root.current?.querySelector("button")?.focus();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const found = [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const next = found.indexOf(document.activeElement as HTMLElement) + (event.key === "ArrowDown" ? 1 : -1);
    found.at(next % found.length)?.focus();
  }

  return (
    <div class="menu" ref={root} onKeyDown={onKey}>
      <button
        type="button"
        class="button button-plain button-icon"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="more" />
      </button>
      {isOpen && (
        <div class="menu-list" role="menu">
          {items.map((item) => (
            <button
              key={item.name}
              type="button"
              role="menuitem"
              class={item.isDangerous ? "is-dangerous" : ""}
              onClick={() => {
                setOpen(false);
                item.onPick();
              }}
            >
              {item.name}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
