// Who looks at the page, and what they may do.
import { computed, signal } from "@preact/signals";
import * as access from "../api/access";
import { isLoggedOut, onRefusedCsrf, useCsrf } from "../api/client";
import { AGAIN_MS, asProblem, type Problem } from "../api/problem";
import type { Me } from "../api/wire";

export const me = signal<Me | null>(null);
/** As whom the server answers. What was loaded for another one must not be shown. */
export const caller = computed(() => me.value && [me.value.kind, me.value.name, me.value.tenant].join("\n"));
export const startProblem = signal<Problem | null>(null);

export async function findOutWhoIAm(): Promise<void> {
  try {
    const found = await access.me();
    useCsrf(found.csrf);
    isLoggedOut.value = false;
    startProblem.value = null;
    me.value = found;
  } catch (error) {
    const problem = asProblem(error);
    if (problem.code !== "unauthenticated") startProblem.value = problem;
    if (problem.isUnreachable && me.peek() === null) setTimeout(() => void findOutWhoIAm(), AGAIN_MS);
  }
}

onRefusedCsrf(async () => {
  const before = caller.peek();
  await findOutWhoIAm();
  return !isLoggedOut.peek() && caller.peek() === before;
});

export async function logIn(name: string, password: string): Promise<void> {
  await access.logIn(name, password);
  await findOutWhoIAm();
}

export async function logOut(): Promise<void> {
  await access.logOut();
  useCsrf(null);
  me.value = null;
  isLoggedOut.value = true;
}

/** Whether the server would let this caller do it; it has the last word in any case. */
export function may(permission: string): boolean {
  const mine = me.value?.permissions;
  return mine === undefined || mine.includes(permission) || mine.includes("*");
}
