// The pages that the navigation leads to, and what one needs to see each.
import { may } from "./state/session";
import type { IconName } from "./ui/icon";

export interface Entry {
  name: string;
  icon: IconName;
  address: string;
  needs: string;
}

const ENTRIES: Entry[] = [
  { name: "Overview", icon: "overview", address: "/", needs: "queues:read" },
  { name: "Jobs", icon: "jobs", address: "/jobs", needs: "jobs:read" },
  { name: "Runs", icon: "runs", address: "/runs", needs: "runs:read" },
  { name: "Failures", icon: "failures", address: "/failures", needs: "jobs:read" },
  { name: "Dead letters", icon: "dead", address: "/dead-letters", needs: "jobs:read" },
  { name: "Schedules", icon: "schedules", address: "/schedules", needs: "schedules:read" },
  { name: "Workers", icon: "workers", address: "/workers", needs: "workers:read" },
  { name: "Credits", icon: "credits", address: "/credits", needs: "credits:read" },
  { name: "Audit", icon: "audit", address: "/audit", needs: "audit:read" },
  { name: "Settings", icon: "settings", address: "/settings", needs: "me:read" },
];

export function entriesHere(): Entry[] {
  return ENTRIES.filter((entry) => may(entry.needs));
}
