// Back and forth through the steps: by buttons, by a slider, by the arrow keys.
import type { TaskStep } from "../api/runs";
import { Button } from "../ui/button";
import { useShortcuts } from "../state/shortcuts";

interface ScrubberProps {
  steps: TaskStep[];
  shown: number;
  onMove: (shown: number) => void;
}

export function Scrubber({ steps, shown, onMove }: ScrubberProps) {
  const move = (to: number): void => onMove(Math.min(steps.length, Math.max(0, to)));
  useShortcuts({
    ArrowLeft: () => move(shown - 1),
    ArrowRight: () => move(shown + 1),
    Home: () => move(0),
    End: () => move(steps.length),
  });
  const step = steps[shown - 1];
  return (
    <div class="scrubber" role="group" aria-label="Step through the run">
      <Button icon="left" label="Step back" isDisabled={shown === 0} onClick={() => move(shown - 1)} />
      <input
        type="range"
        class="scrubber-slider"
        aria-label="Step"
        aria-valuetext={nameOf(step)}
        min={0}
        max={steps.length}
        value={shown}
        onInput={(event) => move(Number(event.currentTarget.value))}
      />
      <Button icon="right" label="Step forward" isDisabled={shown === steps.length} onClick={() => move(shown + 1)} />
      <span class="scrubber-place" role="status">
        <b>
          {shown} of {steps.length}
        </b>{" "}
        <span class="muted">{nameOf(step)}</span>
      </span>
    </div>
  );
}

export function nameOf(step: TaskStep | undefined): string {
  if (step === undefined) return "the prompt";
  return step.what === "llm" ? `${step.model ?? "the model"} answered` : `${step.name} ${step.is_error ? "failed" : "answered"}`;
}
