import { useState } from "preact/hooks";
import { changeUser, makeUser, ROLES, setPassword, users, type User } from "../api/access";
import { useLoad } from "../state/load";
import { me } from "../state/session";
import { attempt, say } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm, Dialog } from "../ui/dialog";
import { Choice, Field, Form } from "../ui/form";
import { Empty } from "../ui/notes";
import { Card } from "../ui/page";
import { MoreThanShown } from "../ui/pager";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

type Open = { kind: "new" } | { kind: "password" | "role"; user: User } | null;

export function UserSettings() {
  const load = useLoad("users", users);
  const [open, setOpen] = useState<Open>(null);
  const close = (): void => {
    setOpen(null);
    load.reload();
  };
  return (
    <Card title="Users" isFlush aside={<Button isSmall icon="plus" onClick={() => setOpen({ kind: "new" })}>New user</Button>}>
      <View of={load}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <Empty title="No users">As soon as there is one, this page asks everybody to log in: make an admin first.</Empty>
          ) : (
            <>
              <Table label="Users" columns={columns(load.reload, setOpen)} rows={items} keyOf={(user) => user.id} />
              <MoreThanShown of={{ items, next_cursor }} />
            </>
          )
        }
      </View>
      {open?.kind === "new" && <NewUserDialog onClose={close} />}
      {open?.kind === "password" && <PasswordDialog user={open.user} onClose={close} />}
      {open?.kind === "role" && <RoleDialog user={open.user} onClose={close} />}
    </Card>
  );
}

function NewUserDialog({ onClose }: { onClose: () => void }) {
  // Without an admin nobody could make another user.
  const isFirst = me.value?.kind === "open";
  return (
    <Dialog title="New user" onClose={onClose}>
      <Form
        verb="Make the user"
        onCancel={onClose}
        onSend={async (values) => {
          const name = values.text("name") ?? "";
          await makeUser({ name, password: values.secret("password"), role: values.text("role") ?? "operator", tenant: values.text("tenant") });
          say(`${name} can log in now`);
          onClose();
        }}
      >
        <Field label="Name" name="name" isRequired />
        <Field label="Password" name="password" type="password" isRequired autocomplete="new-password" />
        <Choice label="Role" name="role" options={ROLES.filter((role) => role !== "worker")} value={isFirst ? "admin" : "operator"} />
        <Field label="Tenant" name="tenant" hint="empty: sees all tenants" />
      </Form>
    </Dialog>
  );
}

function PasswordDialog({ user, onClose }: { user: User; onClose: () => void }) {
  return (
    <Dialog title={`New password for ${user.name}`} onClose={onClose}>
      <Form
        verb="Set the password"
        onCancel={onClose}
        onSend={async (values) => {
          await setPassword(user.id, values.secret("password"));
          say(`${user.name} has a new password; all sessions ended`);
          onClose();
        }}
      >
        <Field label="Password" name="password" type="password" isRequired autocomplete="new-password" />
      </Form>
    </Dialog>
  );
}

function RoleDialog({ user, onClose }: { user: User; onClose: () => void }) {
  return (
    <Dialog title={`Another role for ${user.name}`} onClose={onClose}>
      <Form
        verb="Set the role"
        onCancel={onClose}
        onSend={async (values) => {
          const { role } = await changeUser(user.id, { role: values.text("role") ?? user.role });
          say(`${user.name} is ${role} now`);
          onClose();
        }}
      >
        <Choice label="Role" name="role" options={ROLES} value={user.role} />
      </Form>
    </Dialog>
  );
}

function columns(reload: () => void, open: (what: Open) => void): Column<User>[] {
  async function disable(user: User): Promise<void> {
    const text = "All sessions end, and the name cannot log in until it is enabled again.";
    if (!(await confirm({ title: `Disable ${user.name}?`, text, verb: "Disable", isDangerous: true }))) return;
    await attempt("Disabling", `${user.name} is disabled`, () => changeUser(user.id, { is_disabled: true }));
    reload();
  }
  async function enable(user: User): Promise<void> {
    await attempt("Enabling", `${user.name} can log in again`, () => changeUser(user.id, { is_disabled: false }));
    reload();
  }
  return [
    { name: "Name", isTitle: true, cell: (user) => user.name },
    { name: "Status", cell: (user) => (user.disabled_ms ? <span class="badge tone-bad">Disabled</span> : <span class="badge tone-good">Active</span>) },
    { name: "Role", cell: (user) => user.role },
    { name: "Tenant", isWide: true, cell: (user) => user.tenant ?? <span class="muted">all</span> },
    { name: "Made", isNumber: true, cell: (user) => <Ago ms={user.created_ms} /> },
    {
      name: "Actions",
      isNameHidden: true,
      cell: (user) =>
        user.disabled_ms ? (
          <Button isSmall onClick={() => void enable(user)}>
            Enable
          </Button>
        ) : (
          <div class="row-actions">
            <Button isSmall onClick={() => open({ kind: "role", user })}>
              Role
            </Button>
            <Button isSmall onClick={() => open({ kind: "password", user })}>
              Password
            </Button>
            <Button isSmall kind="danger" onClick={() => void disable(user)}>
              Disable
            </Button>
          </div>
        ),
    },
  ];
}
