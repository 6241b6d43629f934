import { Button } from "../ui/button";
import { Empty } from "../ui/notes";
import { Page } from "../ui/page";
import { navigate } from "../router";

export function MissingPage({ path }: { path: string }) {
  return (
    <Page title="Not found">
      <Empty title="There is no such page" action={<Button onClick={() => navigate("/")}>To the overview</Button>}>
        Nothing is at <code>{path}</code>.
      </Empty>
    </Page>
  );
}
