import { isHelpOpen } from "../state/shortcuts";
import { Dialog } from "./dialog";

const KEYS: [what: string, keys: string[]][] = [
  ["Overview", ["g", "o"]],
  ["Jobs", ["g", "j"]],
  ["Runs", ["g", "r"]],
  ["Failures", ["g", "f"]],
  ["Dead letters", ["g", "d"]],
  ["Schedules", ["g", "s"]],
  ["Workers", ["g", "w"]],
  ["Credits", ["g", "c"]],
  ["Audit", ["g", "a"]],
  ["Settings", ["g", ","]],
  ["Search jobs, or runs in their list", ["/"]],
  ["Save the filter as a view", ["v"]],
  ["Next row, row before", ["j", "k"]],
  ["Open the row", ["Enter"]],
  ["Select the row", ["x"]],
  ["Retry the job or the selection", ["r"]],
  ["New run, in the list of runs", ["n"]],
  ["Replay the run", ["p"]],
  ["Step back, step forward in a replay", ["←", "→"]],
  ["Fork from the step of a replay", ["f"]],
  ["Clear the selection, leave a field, close", ["Esc"]],
  ["Light or dark", ["t"]],
  ["This help", ["?"]],
];

export function Help() {
  return (
    <Dialog
      title="Keyboard shortcuts"
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <dl class="help">
        {KEYS.map(([what, keys]) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
