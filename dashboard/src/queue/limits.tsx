import { clearLimits, setLimits } from "../api/queues";
import type { SharedLimits } from "../api/wire";
import { duration } from "../format";
import { nowMs } from "../state/clock";
import { may } from "../state/session";
import { attempt, say } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm } from "../ui/dialog";
import { Form } from "../ui/form";
import { Card } from "../ui/page";
import { LimitFields, limitsFrom, limitsInWords } from "./limitfields";

export function LimitsCard({ queue, limits, onChange }: { queue: string; limits: SharedLimits; onChange: () => void }) {
  const heldMs = (limits.closed_until_ms ?? 0) - nowMs.value;
  async function lift(): Promise<void> {
    const text = `Now: ${limitsInWords(limits)}. Without them, workers run as many jobs of ${queue} at once as they have slots.`;
    if (!(await confirm({ title: `Lift all limits of ${queue}?`, text, verb: "Lift all limits", isDangerous: true }))) return;
    await attempt("Lifting the limits", `${queue} has no limits now`, () => clearLimits(queue));
    onChange();
  }
  return (
    <Card
      title="What all workers share"
      aside={
        may("limits:write") &&
        hasAny(limits) && (
          <Button isSmall onClick={() => void lift()}>
            Lift all limits
          </Button>
        )
      }
    >
      <p class="muted">
        Now: {limitsInWords(limits)}
        {heldMs > 0 && ` · held for ${duration(heldMs)}`}
      </p>
      {may("limits:write") && (
        <div class="narrow-form">
          <Form
            key={JSON.stringify([limits.concurrency, limits.rate_max, limits.rate_ms])}
            verb="Save"
            onSend={async (values) => {
              await setLimits(queue, limitsFrom(values));
              say(`The limits of ${queue} are set`);
              onChange();
            }}
          >
            <LimitFields limits={limits} />
          </Form>
        </div>
      )}
    </Card>
  );
}

function hasAny({ concurrency, rate_max }: SharedLimits): boolean {
  return Boolean(concurrency) || Boolean(rate_max);
}
