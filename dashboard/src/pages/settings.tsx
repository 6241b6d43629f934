// Who may do what, what tenants may use, who is told of trouble, and how the page looks.
import type { ComponentChild } from "preact";
import { AlertSettings } from "../settings/alerts";
import { Appearance } from "../settings/appearance";
import { KeySettings } from "../settings/keys";
import { TenantSettings } from "../settings/tenants";
import { UserSettings } from "../settings/users";
import { WebhookSettings } from "../settings/webhooks";
import { navigate } from "../router";
import { may, me } from "../state/session";
import { Page } from "../ui/page";
import { Tabs } from "../ui/tabs";
import { Where } from "../ui/where";
import { MissingPage } from "./missing";

interface Part {
  id: string;
  name: string;
  needs: string;
  show: () => ComponentChild;
}

const PARTS: Part[] = [
  { id: "appearance", name: "Appearance", needs: "me:read", show: () => <Appearance /> },
  { id: "keys", name: "API keys", needs: "keys:read", show: () => <KeySettings /> },
  { id: "users", name: "Users", needs: "users:read", show: () => <UserSettings /> },
  { id: "tenants", name: "Tenants", needs: "tenants:read", show: () => <TenantSettings /> },
  { id: "alerts", name: "Alerts", needs: "alerts:read", show: () => <AlertSettings /> },
  { id: "webhooks", name: "Webhooks", needs: "webhooks:read", show: () => <WebhookSettings /> },
];

export function SettingsPage({ tab }: { tab: string }) {
  const parts = PARTS.filter((part) => may(part.needs));
  const part = parts.find((one) => one.id === tab);
  if (!part) return <MissingPage path={`/settings/${tab}`} />;
  const who = me.value;
  return (
    <Page title="Settings" lead={who && <>Bullpen {who.version} · jobs in {who.store ? <Where address={who.store} /> : "its store"} · records in <Where address={who.records} /></>}>
      <Tabs label="Settings" tabs={parts.map(({ id, name }) => ({ id, name }))} current={tab} onPick={(id) => navigate(`/settings/${id}`)} />
      {part.show()}
    </Page>
  );
}
