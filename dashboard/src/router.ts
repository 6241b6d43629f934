// The address bar is the state: every page, filter and page of a list has an address.
import { computed, signal } from "@preact/signals";

interface Place {
  path: string;
  query: URLSearchParams;
}

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(here());
export const currentPath = computed(() => place.value.path);

addEventListener("popstate", () => {
  place.value = here();
});

export function navigate(address: string, options: { replace?: boolean } = {}): void {
  if (address === location.pathname + location.search) return;
  if (options.replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  const before = place.value.path;
  place.value = here();
  if (place.value.path !== before) scrollTo(0, 0);
}

/** Change some words of the query and keep the others; null takes one away. */
export function setQuery(changes: Record<string, string | null>, options: { replace?: boolean } = {}): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  navigate(addressOf(place.value.path, query), options);
}

export function addressOf(path: string, query: URLSearchParams | Record<string, string>): string {
  const text = new URLSearchParams(query).toString();
  return text ? `${path}?${text}` : path;
}

export type Params = Record<string, string>;

/** The parameters of a path that fits a pattern such as `/queues/:queue`; null if it does not. */
export function match(pattern: string, path: string): Params | null {
  const wanted = pattern.split("/");
  const given = path.replace(/\/+$/, "").split("/");
  if (path === "/") given.splice(0, given.length, "", "");
  if (wanted.length !== given.length) return null;
  const params: Params = {};
  for (const [at, word] of wanted.entries()) {
    const part = given[at] ?? "";
    if (word.startsWith(":")) params[word.slice(1)] = safelyDecoded(part);
    else if (word !== part) return null;
  }
  return params;
}

function safelyDecoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Lets plain links move within the page, and leaves all others to the browser. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = (event.target as Element | null)?.closest("a[href]");
  if (!link || link.hasAttribute("target") || link.hasAttribute("download")) return;
  // By its attributes: the links of a drawing have neither origin nor path.
  const address = new URL(link.getAttribute("href") ?? "", location.href);
  if (address.origin !== location.origin) return;
  event.preventDefault();
  navigate(address.pathname + address.search);
}
