// Navigation beside every page; on a phone it lies behind a button.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { queuePage } from "../addresses";
import type { Queue } from "../api/wire";
import { entriesHere, type Entry } from "../entries";
import { count } from "../format";
import { liveSign } from "../live/live";
import { overview } from "../live/overview";
import { currentPath } from "../router";
import { isIdleShown, sorted } from "../state/idle";
import { logOut, me } from "../state/session";
import { isHelpOpen } from "../state/shortcuts";
import { attempt } from "../state/toasts";
import { isDark, toggleTheme } from "../state/theme";
import { Button } from "./button";
import { IdleButton } from "./idle";
import { Icon, Mark } from "./icon";
import { countOf, ready } from "./state";

export function Shell({ children }: { children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [currentPath.value]);
  useFocusOnHeading();
  return (
    <div class={isOpen ? "shell is-open" : "shell"}>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <span class="only-heard" role="status">
        {liveSign.value.said ?? liveSign.value.text}
      </span>
      <header class="topbar">
        <Brand />
        <LiveSign />
        <Button kind="quiet" icon={isOpen ? "close" : "menu"} label={isOpen ? "Close navigation" : "Open navigation"} onClick={() => setOpen(!isOpen)} />
      </header>
      <div class="side">
        <div class="side-top">
          <Brand />
          <LiveSign />
        </div>
        <nav class="nav" aria-label="Pages">
          {entriesHere().map((entry) => (
            <NavLink key={entry.address} entry={entry} />
          ))}
        </nav>
        <QueueLinks />
        <Who />
      </div>
      {children}
    </div>
  );
}

/** Another page begins at its heading, which is read aloud with that; a link that was left there no longer has the focus. */
function useFocusOnHeading(): void {
  const last = useRef<HTMLElement | null>(null);
  useEffect(() => {
    const main = document.getElementById("main");
    const heading = main?.querySelector("h1") ?? null;
    const isOther = last.current !== null && heading !== last.current;
    last.current = heading;
    // A page may begin in a field of its own.
    if (isOther && !main?.contains(document.activeElement)) heading?.focus({ preventScroll: true });
  }, [currentPath.value]);
}

function skip(event: MouseEvent): void {
  event.preventDefault();
  const main = document.getElementById("main");
  main?.setAttribute("tabindex", "-1");
  main?.focus();
}

function Brand() {
  return (
    <a class="brand" href="/">
      <Mark />
      Bullpen
    </a>
  );
}

function LiveSign() {
  const { tone, text, hint } = liveSign.value;
  return (
    <span class={`live tone-${tone}`} title={hint}>
      <i class="dot" />
      {text}
    </span>
  );
}

function NavLink({ entry }: { entry: Entry }) {
  const path = currentPath.value;
  const isHere = entry.address === "/" ? path === "/" : path.startsWith(entry.address);
  const failed = entry.address === "/dead-letters" ? failedInAll() : 0;
  return (
    <a href={entry.address} aria-current={isHere ? "page" : undefined}>
      <Icon name={entry.icon} />
      <span class="nav-name">{entry.name}</span>
      {failed > 0 && <span class="nav-count is-bad">{count(failed)}</span>}
    </a>
  );
}

function failedInAll(): number {
  return (overview.value?.queues ?? []).reduce((sum, queue) => sum + countOf(queue.counts, "failed"), 0);
}

function QueueLinks() {
  const queues = overview.value?.queues ?? [];
  if (queues.length === 0) return null;
  const { busy, idle } = sorted(queues);
  // Where one is stays in sight.
  const unfolded = idle.filter((queue) => isIdleShown.value || isHere(queue));
  return (
    <nav class="nav" aria-label="Queues">
      <h2>Queues</h2>
      {busy.map((queue) => <QueueLink key={queue.name} queue={queue} />)}
      {idle.length > 0 && <IdleButton number={idle.length} />}
      {unfolded.map((queue) => <QueueLink key={queue.name} queue={queue} />)}
    </nav>
  );
}

function QueueLink({ queue }: { queue: Queue }) {
  return (
    <a href={queuePage(queue.name)} aria-current={isHere(queue) ? "page" : undefined}>
      <Icon name={queue.paused ? "pause" : "queue"} />
      <span class="nav-name cut">{queue.name}</span>
      <span class="nav-count" title="Waiting and active">
        {count(ready(queue.counts) + countOf(queue.counts, "active"))}
      </span>
    </a>
  );
}

function isHere(queue: Queue): boolean {
  const address = queuePage(queue.name);
  return currentPath.value === address || currentPath.value.startsWith(`${address}/`);
}

function Who() {
  const who = me.value;
  return (
    <div class="side-foot">
      <div class="side-who">
        <span class="cut">{who?.name}</span>
        <small class="cut">{who?.tenant ? `${who.role} of ${who.tenant}` : who?.role}</small>
      </div>
      <Button
        kind="quiet"
        isSmall
        icon="keyboard"
        label="Keyboard shortcuts"
        onClick={() => {
          isHelpOpen.value = true;
        }}
      />
      <Button kind="quiet" isSmall icon={isDark() ? "sun" : "moon"} label="Switch between light and dark" onClick={toggleTheme} />
      {who?.kind === "session" && (
        <Button kind="quiet" isSmall onClick={() => void attempt("Logging out", "Logged out", logOut)}>
          Log out
        </Button>
      )}
    </div>
  );
}
