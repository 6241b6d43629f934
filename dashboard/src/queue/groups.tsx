// The groups of a queue, mostly its tenants: how many wait, what holds them, and their turns.
import { useState } from "preact/hooks";
import { actOnGroup, groups as loadGroups, setGroup } from "../api/queues";
import type { Group, GroupLimits } from "../api/wire";
import { count, duration, plural } from "../format";
import { useLiveReload } from "../live/live";
import { nowMs } from "../state/clock";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { attempt } from "../state/toasts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { Empty } from "../ui/notes";
import { cursorHere, Pager } from "../ui/pager";
import { Card } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";
import { GroupLimitFields, groupLimitsFrom, limitsInWords } from "./limitfields";

export function Groups({ queue }: { queue: string }) {
  const cursor = cursorHere();
  const load = useLoad(`groups ${queue} ${cursor}`, (abort) => loadGroups(queue, cursor, abort));
  useLiveReload(load.reload, { queue, everyMs: 1_500 });
  const [edited, setEdited] = useState<Group | null>(null);
  return (
    <Card isFlush>
      <View of={load}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <Empty title="No groups">Jobs that name a group wait in a line of their own, and the lines take turns; <code>group="{"{"}tenant{"}"}"</code> makes one for each tenant.</Empty>
          ) : (
            <>
              <Table label="Groups" columns={columns(queue, load.reload, setEdited)} rows={items} keyOf={(group) => group.name} />
              <Pager next={next_cursor} shown={plural(items.length, "group")} />
            </>
          )
        }
      </View>
      {edited && (
        <GroupDialog
          queue={queue}
          group={edited}
          onClose={() => {
            setEdited(null);
            load.reload();
          }}
        />
      )}
    </Card>
  );
}

function status(group: Group) {
  if (group.paused) return <span class="badge tone-odd">Paused</span>;
  if (group.closed_until_ms && group.closed_until_ms > nowMs.value) {
    return <span class="badge tone-odd">Held for {duration(group.closed_until_ms - nowMs.value)}</span>;
  }
  return <span class="badge tone-good">Open</span>;
}

function columns(queue: string, reload: () => void, edit: (group: Group) => void): Column<Group>[] {
  async function pause(group: Group): Promise<void> {
    const paused = !group.paused;
    await attempt("Changing the group", `${group.name} ${paused ? "is paused" : "runs again"}`, () => actOnGroup(queue, group.name, paused ? "pause" : "resume"));
    reload();
  }
  return [
    { name: "Group", isTitle: true, cell: (group) => group.name },
    { name: "Status", cell: status },
    { name: "Waiting", isNumber: true, cell: (group) => count(group.waiting) },
    { name: "Active", isNumber: true, cell: (group) => count(group.active) },
    { name: "Oldest", isNumber: true, cell: (group) => <Ago ms={group.oldest_ms} /> },
    { name: "Own limits", isWide: true, cell: (group) => <span class="muted">{limitsInWords(group.limits)}</span> },
    {
      name: "Actions",
      isNameHidden: true,
      cell: (group) =>
        may("limits:write") && (
          <div class="row-actions">
            <Button isSmall onClick={() => edit(group)}>
              Limits
            </Button>
            <Button isSmall kind="quiet" icon={group.paused ? "play" : "pause"} label={group.paused ? `Resume ${group.name}` : `Pause ${group.name}`} onClick={() => void pause(group)} />
          </div>
        ),
    },
  ];
}

function GroupDialog({ queue, group, onClose }: { queue: string; group: Group; onClose: () => void }) {
  async function save(limits: GroupLimits): Promise<void> {
    await setGroup(queue, group.name, limits);
    onClose();
  }
  return (
    <Dialog title={`Limits of ${group.name}`} onClose={onClose}>
      <Form verb="Save" onCancel={onClose} onSend={(values) => save(groupLimitsFrom(values))}>
        <GroupLimitFields limits={group.limits} />
      </Form>
    </Dialog>
  );
}
