// The only place that calls fetch.
import { signal } from "@preact/signals";
import { learnServerTime } from "../state/clock";
import { Problem, problemOf, unreachable } from "./problem";
import type { Page } from "./wire";

export type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>;

const BASE = "/v1";

let csrf: string | null = null;
/** Set when an answer says that nobody is logged in; the page then shows the login. */
export const isLoggedOut = signal(false);

/** The page is being closed or left: what is written now must outlive it. */
let isGoing = false;
// Before those who write when they hear of it.
addEventListener("pagehide", () => (isGoing = true), { capture: true });
addEventListener("pageshow", () => (isGoing = false));

export function useCsrf(token: string | null): void {
  csrf = token;
}

let isStillMe: () => Promise<boolean> = async () => false;

/** What finds out, after the server refused the token, whether the session of now is of the same caller. */
export function onRefusedCsrf(findOut: () => Promise<boolean>): void {
  isStillMe = findOut;
}

export function url(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) for (const one of value as readonly string[]) words.append(name, one);
    else words.append(name, String(value));
  }
  const text = words.toString();
  return `${BASE}${path}${text ? `?${text}` : ""}`;
}

/** A server that has not answered by then counts as one that does not. */
const PATIENCE_MS = 15_000;

export async function get<T>(path: string, query: Query = {}, abort?: AbortSignal): Promise<T> {
  const ending = new AbortController();
  abort?.addEventListener("abort", () => ending.abort());
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    ending.abort();
  }, PATIENCE_MS);
  try {
    return await send<T>(url(path, query), { method: "GET", signal: ending.signal });
  } catch (error) {
    throw isLate ? unreachable() : error;
  } finally {
    clearTimeout(timer);
  }
}

const AT_ONCE = 500;
const MOST_PAGES = 10;

/** A list that is short as a rule, page after page to its end; `next_cursor` tells that there are more than it reads. */
export async function getAll<T>(path: string, abort?: AbortSignal): Promise<Page<T>> {
  const all: Page<T> = { items: [], next_cursor: null };
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page: Page<T> = await get(path, { limit: AT_ONCE, cursor: all.next_cursor }, abort);
    all.items.push(...page.items);
    all.next_cursor = page.next_cursor;
    if (page.next_cursor === null) break;
  }
  return all;
}

export type Verb = "POST" | "PUT" | "PATCH" | "DELETE";

/** A write. It bears a key, so that it can be sent again when its answer was lost; who may send it later has its own. */
export async function write<T>(verb: Verb, path: string, body: unknown = {}, key = randomKey()): Promise<T> {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Bullpen": "dashboard",
    "Idempotency-Key": key,
  };
  // Not always: browsers refuse more than 64 KiB of what is to outlive the page.
  const request = { method: verb, headers, body: JSON.stringify(body), keepalive: isGoing };
  try {
    return await sendAsMe<T>(url(path), request);
  } catch (error) {
    if (error instanceof Problem && error.isUnreachable) return sendAsMe<T>(url(path), request);
    throw error;
  }
}

/** A file as the body of a POST, sent once: it may be large. */
export function upload<T>(path: string, query: Query, file: File, key: string): Promise<T> {
  const headers = { "X-Bullpen": "dashboard", "Content-Type": file.type || "application/octet-stream", "Idempotency-Key": key };
  return sendAsMe<T>(url(path, query), { method: "POST", headers, body: file });
}

/** With the token of the session, which is another one after a login in another tab. */
async function sendAsMe<T>(address: string, request: RequestInit & { headers: Record<string, string> }): Promise<T> {
  const once = (): Promise<T> => send<T>(address, { ...request, headers: { ...request.headers, ...(csrf && { "X-CSRF-Token": csrf }) } });
  try {
    return await once();
  } catch (error) {
    if (!(error instanceof Problem && error.code === "csrf")) throw error;
    if (await isStillMe()) return once();
    throw new Problem(error.status, error.code, "Nothing was done", "Somebody else has logged in meanwhile, in another tab of this browser.");
  }
}

async function send<T>(address: string, request: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...request });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable();
  }
  learnServerTime(answer.headers.get("date"));
  if (!answer.ok) {
    const problem = await problemOf(answer);
    if (problem.code === "unauthenticated") isLoggedOut.value = true;
    throw problem;
  }
  if (answer.status === 204) return undefined as T;
  return (await answer.json()) as T;
}

export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A path with each part made safe: names and ids may hold slashes and colons. */
export function path(strings: TemplateStringsArray, ...parts: string[]): string {
  return strings.reduce((text, piece, at) => text + encodeURIComponent(parts[at - 1] ?? "") + piece);
}
