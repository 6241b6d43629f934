// Saved views of a list of jobs: what was filtered, under a name that one click or one address opens.
import { useEffect, useState } from "preact/hooks";
import { FILTER_WORDS, type JobFilter } from "../api/jobs";
import type { Problem } from "../api/problem";
import { removeView, saveView, views, type SavedView } from "../api/views";
import { addressOf, navigate, place } from "../router";
import { useLoad } from "../state/load";
import { may, me } from "../state/session";
import { useShortcuts } from "../state/shortcuts";
import { attempt, say } from "../state/toasts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Check, Field, Form, type FormValues } from "../ui/form";
import { Skeleton } from "../ui/notes";
import { filterHere } from "./filters";

interface ViewsProps {
  /** The path of the list, such as `/jobs`: a view belongs to one. */
  page: string;
}

export function Views({ page }: ViewsProps) {
  return may("views:write") ? <ViewBar page={page} /> : null;
}

function ViewBar({ page }: ViewsProps) {
  const load = useLoad(`views ${page}`, views);
  const [isSaving, setSaving] = useState(false);
  const found = (load.data?.items ?? []).filter((view) => view.page === page);
  const current = found.find((view) => isSame(filterOf(view), filterHere()));
  useShortcuts({ v: () => setSaving(true) });
  useOpening(page, load.data && found);

  async function remove(view: SavedView): Promise<void> {
    const { name, query, is_shared } = view;
    const save = (): Promise<unknown> => saveView({ name, page, query, is_shared });
    const back = (): void => void attempt("Saving the view", `The view ${name} is back`, save).then(load.reload);
    await attempt("Removing the view", `The view ${name} is removed`, () => removeView(name), back);
    load.reload();
  }

  return (
    <nav class="views" aria-label="Saved views">
      {/* First, so that it does not move away from under the pointer when the views come. */}
      <Button isSmall icon="plus" onClick={() => setSaving(true)}>
        Save view
      </Button>
      {load.data ? found.length === 0 && <span class="muted">No saved views yet. Set a filter and save it under a name.</span> : <NoViews problem={load.problem} />}
      {found.map((view) => (
        <ViewChip key={view.id} view={view} isCurrent={view === current} onRemove={() => void remove(view)} />
      ))}
      {isSaving && (
        <SaveDialog
          page={page}
          current={current}
          onClose={() => {
            setSaving(false);
            load.reload();
          }}
        />
      )}
    </nav>
  );
}

/** They stand above what the page is about, so that what is wrong with them takes a line. */
function NoViews({ problem }: { problem: Problem | null }) {
  return problem ? <span class="muted">Saved views: {problem.title}</span> : <Skeleton lines={1} />;
}

/** An address that names a view leads to what the view holds. */
function useOpening(page: string, found: SavedView[] | undefined): void {
  const wanted = place.value.query.get("view");
  useEffect(() => {
    if (!wanted || !found) return;
    const view = found.find(({ id }) => id === wanted);
    if (!view) say("There is no such view", { tone: "bad", detail: "It was removed, or its owner does not share it." });
    navigate(addressOf(page, view ? { ...filterOf(view) } : {}), { replace: true });
  }, [page, wanted, found]);
}

interface ViewChipProps {
  view: SavedView;
  isCurrent: boolean;
  onRemove: () => void;
}

function ViewChip({ view, isCurrent, onRemove }: ViewChipProps) {
  const isMine = view.owner === me.value?.name;
  const whose = isMine ? (view.is_shared ? "yours, shared" : "yours") : `shared by ${view.owner}`;
  return (
    <span class={isCurrent ? "view is-current" : "view"} title={whose}>
      <a href={addressOf(view.page, { view: view.id })} aria-current={isCurrent ? "page" : undefined}>
        {view.name}
        {view.is_shared && <small>{isMine ? "shared" : view.owner}</small>}
      </a>
      {isMine && <Button kind="quiet" isSmall icon="close" label={`Remove the view ${view.name}`} onClick={onRemove} />}
    </span>
  );
}

interface SaveDialogProps {
  page: string;
  current: SavedView | undefined;
  onClose: () => void;
}

function SaveDialog({ page, current, onClose }: SaveDialogProps) {
  const isMine = current?.owner === me.value?.name;
  async function save(values: FormValues): Promise<void> {
    const name = values.text("name") ?? "";
    await saveView({ name, page, query: { ...filterHere() }, is_shared: values.isOn("shared") });
    say(`The view ${name} is saved`);
    onClose();
  }
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <Form verb="Save" onCancel={onClose} onSend={save}>
        <Field label="Name" name="name" value={isMine ? current?.name : ""} isRequired hint="a view of yours with this name is replaced" />
        <Check label="Share it" name="shared" isOn={isMine && current?.is_shared === true} hint="with all who see the same jobs as you" />
      </Form>
    </Dialog>
  );
}

/** Whatever else a view holds, others than this page have put there. */
function filterOf(view: SavedView): JobFilter {
  const filter: JobFilter = {};
  for (const word of FILTER_WORDS) {
    const value = view.query[word];
    if (typeof value === "string" && value) filter[word] = value;
  }
  return filter;
}

function isSame(one: JobFilter, other: JobFilter): boolean {
  return FILTER_WORDS.every((word) => one[word] === other[word]);
}
