import { plural } from "../format";
import { isIdleShown, toggleIdle } from "../state/idle";
import { Icon } from "./icon";

/** Unfolds the idle queues beside it. */
export function IdleButton({ number }: { number: number }) {
  return (
    <button type="button" class="button button-quiet idle" aria-expanded={isIdleShown.value} onClick={toggleIdle}>
      <Icon name={isIdleShown.value ? "down" : "right"} />
      {plural(number, "idle queue")}
    </button>
  );
}
