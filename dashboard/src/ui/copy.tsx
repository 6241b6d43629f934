import { useState } from "preact/hooks";
import { Button } from "./button";

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  return (
    <Button
      kind="quiet"
      isSmall
      icon={isDone ? "check" : "copy"}
      label={isDone ? "Copied" : label}
      onClick={() => {
        void navigator.clipboard.writeText(text).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1_500);
        });
      }}
    />
  );
}
