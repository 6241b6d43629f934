import { Copy } from "../ui/copy";

export function Stack({ text }: { text: string }) {
  return (
    <div class="code-box">
      <Copy text={text} label="Copy the stack" />
      <pre tabIndex={0} role="region" aria-label="Stack">
        {text}
      </pre>
    </div>
  );
}
