// Every page and its address.
import type { ComponentChild } from "preact";
import { AuditPage } from "./pages/audit";
import { ComparePage } from "./pages/compare";
import { CreditsPage } from "./pages/credits";
import { DeadLettersPage } from "./pages/deadletters";
import { FailuresPage } from "./pages/failures";
import { FlowPage } from "./pages/flow";
import { HomePage } from "./pages/home";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { MissingPage } from "./pages/missing";
import { QueuePage } from "./pages/queue";
import { ReplayPage } from "./pages/replay";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { SchedulesPage } from "./pages/schedules";
import { SettingsPage } from "./pages/settings";
import { WorkersPage } from "./pages/workers";
import { match, type Params } from "./router";

type Show = (params: Params) => ComponentChild;

const ROUTES: [pattern: string, show: Show][] = [
  ["/", () => <HomePage />],
  ["/queues/:queue", ({ queue = "" }) => <QueuePage key={queue} name={queue} />],
  ["/queues/:queue/jobs/:id", ({ queue = "", id = "" }) => <JobPage key={`${queue}/${id}`} queue={queue} id={id} />],
  ["/queues/:queue/jobs/:id/flow", ({ queue = "", id = "" }) => <FlowPage key={`${queue}/${id}`} queue={queue} id={id} />],
  ["/jobs", () => <JobsPage />],
  ["/runs", () => <RunsPage />],
  ["/runs/:id", ({ id = "" }) => <RunPage key={id} id={id} />],
  ["/runs/:id/replay", ({ id = "" }) => <ReplayPage key={id} id={id} />],
  ["/runs/:id/compare", ({ id = "" }) => <ComparePage key={id} id={id} />],
  ["/credits", () => <CreditsPage />],
  ["/failures", () => <FailuresPage />],
  ["/dead-letters", () => <DeadLettersPage />],
  ["/schedules", () => <SchedulesPage />],
  ["/workers", () => <WorkersPage />],
  ["/audit", () => <AuditPage />],
  ["/settings", () => <SettingsPage tab="appearance" />],
  ["/settings/:tab", ({ tab = "" }) => <SettingsPage tab={tab} />],
];

export function pageAt(path: string): ComponentChild {
  for (const [pattern, show] of ROUTES) {
    const params = match(pattern, path);
    if (params) return show(params);
  }
  return <MissingPage path={path} />;
}
