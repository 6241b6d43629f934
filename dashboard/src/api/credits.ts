// What a tenant has, holds and has spent. All amounts are micro-credits unless a name says otherwise.
import { get, write } from "./client";
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

export const deposit = (made: Deposit): Promise<unknown> => write("POST", "/credits/deposits", made);
