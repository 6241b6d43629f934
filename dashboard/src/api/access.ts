// Who may do what: login, keys, users, tenants and plans, alerts, the audit log.
import { get, getAll, path, write } from "./client";
import type { GroupLimits, Json, Me, Page } from "./wire";

export const ROLES = ["admin", "operator", "reviewer", "producer", "worker"] as const;

export interface ApiKey {
  id: string;
  prefix: string;
  name: string;
  role: string;
  tenant: string | null;
  queues: string[] | null;
  created_by: string;
  created_ms: number;
  expires_ms: number | null;
  revoked_ms: number | null;
  last_used_ms: number | null;
}

export interface User {
  id: string;
  name: string;
  role: string;
  tenant: string | null;
  created_ms: number;
  disabled_ms: number | null;
}

export interface Plan {
  limits?: GroupLimits;
  queues?: Record<string, GroupLimits>;
  default_priority?: number;
  highest_priority?: number;
  uploads_mb?: number | null;
}

export interface Tenant {
  id: string;
  name: string;
  plan: Plan;
  created_ms: number;
  disabled_ms: number | null;
}

export interface AuditEntry {
  number: number;
  at_ms: number;
  actor: string;
  action: string;
  target: string;
  tenant: string | null;
  outcome: string;
  details: Record<string, Json>;
}

export interface NewKey {
  name: string;
  role: string;
  tenant?: string | null;
  queues?: string[] | null;
  expires_ms?: number | null;
}

export interface NewUser {
  name: string;
  password: string;
  role: string;
  tenant?: string | null;
}

export const me = (): Promise<Me> => get("/me");
export const logIn = (name: string, password: string): Promise<unknown> => write("POST", "/login", { name, password });
export const logOut = (): Promise<unknown> => write("POST", "/logout");

export const keys = (abort?: AbortSignal): Promise<Page<ApiKey>> => getAll("/keys", abort);
export const makeKey = (key: NewKey): Promise<ApiKey & { text: string | null }> => write("POST", "/keys", key);
export const revokeKey = (id: string): Promise<unknown> => write("DELETE", path`/keys/${id}`);

export const users = (abort?: AbortSignal): Promise<Page<User>> => getAll("/users", abort);
export const makeUser = (user: NewUser): Promise<User> => write("POST", "/users", user);
export const setPassword = (id: string, password: string): Promise<unknown> =>
  write("POST", path`/users/${id}/password`, { password });
export const changeUser = (id: string, change: { role?: string; is_disabled?: boolean }): Promise<User> =>
  write("PATCH", path`/users/${id}`, change);

export const tenants = (abort?: AbortSignal): Promise<Page<Tenant>> => getAll("/tenants", abort);
export const makeTenant = (tenant: { id: string; name?: string; plan?: Plan }): Promise<Tenant> =>
  write("POST", "/tenants", tenant);
export const setPlan = (id: string, plan: Plan): Promise<Tenant> => write("PUT", path`/tenants/${id}`, { plan });
export const setTenantDisabled = (id: string, isDisabled: boolean): Promise<Tenant> =>
  write("PUT", path`/tenants/${id}`, { is_disabled: isDisabled });
export const removeTenant = (id: string): Promise<unknown> => write("DELETE", path`/tenants/${id}`);

export type AuditFilter = Partial<Record<"actor" | "action" | "target" | "tenant", string>>;

export const audit = (filter: AuditFilter, cursor: string | null, abort?: AbortSignal): Promise<Page<AuditEntry>> =>
  get("/audit", { ...filter, cursor, limit: 50 }, abort);

export interface Alert {
  id: string;
  name: string;
  tenant: string | null;
  condition: Json;
  channel: Json;
  is_enabled: boolean;
  /** Whether it is of a shape that is told. */
  tells: boolean;
  changed_ms: number;
}

export type AlertChange = Omit<Alert, "id" | "tenant" | "changed_ms" | "tells"> & { id: string | null };

export const alerts = (abort?: AbortSignal): Promise<Page<Alert>> => get("/alerts", {}, abort);
export const saveAlert = (alert: AlertChange): Promise<Alert> => write("PUT", "/alerts", alert);
export const removeAlert = (id: string): Promise<unknown> => write("DELETE", path`/alerts/${id}`);
