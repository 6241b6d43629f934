import { filterHere, Filters } from "../jobs/filters";
import { JobList } from "../jobs/list";
import { Views } from "../jobs/views";
import { Page } from "../ui/page";

export function JobsPage() {
  return (
    <Page title="Jobs" lead="The newest first. Every filter is part of the address, so a list can be shared.">
      <Views page="/jobs" />
      <Filters />
      <JobList filter={filterHere()} />
    </Page>
  );
}
