// JSON with its parts told apart by colour; long texts are cut until one asks for all.
import { useMemo, useState } from "preact/hooks";
import type { Json } from "../api/wire";
import { Button } from "./button";
import { Copy } from "./copy";

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONGEST = 6_000;

export function JsonView({ value }: { value: Json | undefined }) {
  const [isWhole, setWhole] = useState(false);
  const text = useMemo(() => JSON.stringify(value ?? null, null, 2), [value]);
  const isLong = text.length > LONGEST;
  const shown = isLong && !isWhole ? text.slice(0, LONGEST) : text;
  return (
    <div class="code-box">
      <Copy text={text} label="Copy JSON" />
      <pre class="json" tabIndex={0} role="region" aria-label="JSON">
        <code>{coloured(shown)}</code>
      </pre>
      {isLong && !isWhole && (
        <Button isSmall onClick={() => setWhole(true)}>
          Show all {Math.round(text.length / 1024)} KiB
        </Button>
      )}
    </div>
  );
}

function coloured(text: string) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > at) parts.push(text.slice(at, found.index));
    const [whole, quoted, colon, word] = found;
    const kind = quoted ? (colon ? "name" : "text") : word ? "word" : "number";
    parts.push(<span class={`json-${kind}`}>{quoted ?? whole}</span>);
    if (colon) parts.push(colon);
    at = found.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts;
}
