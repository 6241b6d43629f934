import { dismiss, toasts, type Toast } from "../state/toasts";
import { Button } from "./button";

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <ToastCard key={toast.id} toast={toast} />
      ))}
    </div>
  );
}

function ToastCard({ toast }: { toast: Toast }) {
  return (
    <div class={`toast toast-${toast.tone}`}>
      <i class="dot" />
      <div class="toast-words">
        <p>{toast.text}</p>
        {toast.detail && <p class="toast-detail">{toast.detail}</p>}
      </div>
      {toast.undo && (
        <Button
          isSmall
          onClick={() => {
            toast.undo?.();
            dismiss(toast.id);
          }}
        >
          Undo
        </Button>
      )}
      {toast.stop && (
        <Button isSmall onClick={toast.stop}>
          Stop
        </Button>
      )}
      <Button kind="quiet" isSmall icon="close" label="Dismiss" onClick={() => dismiss(toast.id)} />
      {toast.undo && <span class="toast-time" />}
    </div>
  );
}
