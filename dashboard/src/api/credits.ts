// What a tenant has, holds and has spent. All amounts are micro-credits unless a name says otherwise.
import { get, path, write } from "./client";
import type { Page } from "./wire";

export interface Balance {
  tenant: string;
  available: number;
  held: number;
  spent: number;
}

export interface StatementEntry {
  number: number;
  kind: string;
  amount: number;
  available: number;
  held: number;
  spent: number;
  memo: string;
  at_ms: number;
}

export const balance = (tenant: string | null, abort?: AbortSignal): Promise<Balance> => get("/credits", { tenant }, abort);

export const statement = (tenant: string | null, cursor: string | null, abort?: AbortSignal): Promise<Page<StatementEntry>> =>
  get("/credits/statement", { tenant, cursor, limit: 50 }, abort);

export interface Deposit {
  tenant: string;
  /** Whole credits. */
  credits: number;
  memo?: string;
}

export const deposit = (made: Deposit, key: string): Promise<unknown> => write("POST", "/credits/deposits", made, key);

export const PERIODS = ["day", "month", "total"] as const;

export interface Budget {
  tenant: string;
  period: string;
  most: number;
  held: number;
  spent: number;
  left: number;
  /** Null if never. */
  renews_ms: number | null;
}

export type Budgets = Page<Budget>;

export const budgets = (tenant: string | null, abort?: AbortSignal): Promise<Budgets> => get("/credits/budgets", { tenant }, abort);

/** In whole credits. */
export const setBudget = (period: string, made: { tenant: string; credits: number }): Promise<unknown> =>
  write("PUT", path`/credits/budgets/${period}`, made);

export const removeBudget = (period: string, tenant: string): Promise<unknown> =>
  write("DELETE", path`/credits/budgets/${period}?tenant=${tenant}`);
