// The frame of each page: title, what stands beside it, and cards.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

interface PageProps {
  title: string;
  /** Where the page belongs, as links above the title. */
  trail?: ComponentChildren;
  badge?: ComponentChildren;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Page({ title, trail, badge, lead, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Bullpen`;
  }, [title]);
  return (
    <main class="page" id="main">
      <header class="page-head">
        <div class="page-title">
          {trail && <nav class="trail" aria-label="Where this page belongs">{trail}</nav>}
          <h1 tabIndex={-1}>
            <span>{title}</span> {badge}
          </h1>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </main>
  );
}

interface CardProps {
  title?: string;
  aside?: ComponentChildren;
  isFlush?: boolean;
  children: ComponentChildren;
}

export function Card({ title, aside, isFlush = false, children }: CardProps) {
  return (
    <section class={isFlush ? "card card-flush" : "card"} aria-label={title}>
      {(title || aside) && (
        <header class="card-head">
          {title && <h2>{title}</h2>}
          {aside && <div class="card-aside">{aside}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

interface FigureProps {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: string | undefined;
  href?: string;
}

/** One number with its name. */
export function Figure({ label, value, note, tone, href }: FigureProps) {
  const inner = (
    <>
      <span class="figure-label">{label}</span>
      <span class={tone ? `figure-value tone-${tone}` : "figure-value"}>{value}</span>
      {note && <span class="figure-note">{note}</span>}
    </>
  );
  return href ? (
    <a class="figure" href={href}>
      {inner}
    </a>
  ) : (
    <div class="figure">{inner}</div>
  );
}
