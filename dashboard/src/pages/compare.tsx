// Two runs beside each other: where they part, and what each did from there on.
import { comparePage, runPage } from "../addresses";
import * as runs from "../api/runs";
import type { Comparison } from "../api/runs";
import { PairList } from "../compare/pairs";
import { Sides } from "../compare/sides";
import { navigate, place, setQuery } from "../router";
import { firstWords } from "../runs/columns";
import { useLoad } from "../state/load";
import { Button } from "../ui/button";
import { Empty } from "../ui/notes";
import { Card, Page } from "../ui/page";
import { View } from "../ui/view";

export function ComparePage({ id }: { id: string }) {
  const other = place.value.query.get("with") ?? "";
  const load = useLoad(`compare ${id} ${other}`, (abort) => runs.compare(id, other, abort));
  return (
    <Page
      title={load.data ? firstWords(load.data.one.prompt, 60) : id}
      trail={
        <>
          <a href="/runs">Runs</a>
          <a href={runPage(id)}>
            <code>{id}</code>
          </a>
          <span>Compare</span>
        </>
      }
      actions={
        <>
          <Button onClick={() => navigate(comparePage(other, id))}>Swap sides</Button>
          <Button onClick={load.reload}>Look again</Button>
        </>
      }
    >
      <View of={load} lines={10}>
        {(found) => <Beside found={found} />}
      </View>
    </Page>
  );
}

function Beside({ found }: { found: Comparison }) {
  const isWhole = place.value.query.get("all") === "1";
  const shown = isWhole ? found.items : found.items.filter((pair) => pair.differs.length > 0);
  return (
    <>
      <Sides found={found} />
      <Card isFlush>
        <div class="replay-bar">
          <span role="status">{verdictOf(found)}</span>
          <label class="choice">
            <input type="checkbox" checked={isWhole} onChange={() => setQuery({ all: isWhole ? null : "1" })} />
            <span>Show what is the same</span>
          </label>
        </div>
        {shown.length > 0 ? <PairList pairs={shown} /> : <Empty title="No step differs">Both did and said the same at each place of their records.</Empty>}
      </Card>
    </>
  );
}

function verdictOf(found: Comparison): string {
  if (found.parts_at === null) return `All ${found.items.length} places are the same`;
  const before = found.items.filter((pair) => pair.place < (found.parts_at ?? 0)).length;
  const same = before === 0 ? "They part at the first step" : `The first ${before === 1 ? "step is" : `${before} steps are`} the same`;
  return `${same}; ${found.differing} of ${found.items.length} places differ`;
}
