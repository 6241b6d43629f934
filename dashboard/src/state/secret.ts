// What is shown once and never again. It outlives the page that it was made on: the first key ends the open mode,
// and with it that page.
import { signal } from "@preact/signals";

export interface Secret {
  title: string;
  text: string;
  /** What the button says that copies it. */
  copies: string;
}

export const secret = signal<Secret | null>(null);
