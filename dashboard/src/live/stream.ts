// One server-sent stream that comes back by itself, also after answers that end an EventSource for good.
// A page that nobody sees has none: a browser keeps six connections to a server, for all its tabs together.

export type StreamState = "opening" | "live" | "reconnecting";

export interface StreamHandlers {
  kinds: readonly string[];
  onEvent: (kind: string, data: unknown) => void;
  onState?: (state: StreamState) => void;
  /** It is there again; what happened meanwhile is not told, unless the address asks for it. */
  onReturn?: () => void;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** The server's sign of life, each 15 seconds in which nothing happens. */
const BEAT = "beat";
/** A connection that died on the way tells no error: it only is silent. */
const SILENT_MS = 40_000;

/** An address that is made anew for each connection can say from where to go on. */
export function openStream(address: string | (() => string), handlers: StreamHandlers): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  let waitMs = FIRST_WAIT_MS;
  let wasLive = false;

  function connect(): void {
    source = new EventSource(typeof address === "string" ? address : address());
    hear();
    source.onopen = () => {
      hear();
      waitMs = FIRST_WAIT_MS;
      handlers.onState?.("live");
      if (wasLive) handlers.onReturn?.();
      wasLive = true;
    };
    source.onerror = () => {
      handlers.onState?.("reconnecting");
      if (source?.readyState === EventSource.CLOSED) later();
    };
    source.addEventListener(BEAT, hear);
    for (const kind of handlers.kinds) {
      source.addEventListener(kind, (event) => {
        hear();
        handlers.onEvent(kind, parsed((event as MessageEvent<string>).data));
      });
    }
  }

  function hear(): void {
    clearTimeout(silence);
    silence = setTimeout(() => {
      handlers.onState?.("reconnecting");
      later();
    }, SILENT_MS);
  }

  function later(): void {
    rest();
    timer = setTimeout(connect, waitMs);
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }

  function rest(): void {
    clearTimeout(timer);
    clearTimeout(silence);
    source?.close();
    source = null;
  }

  function showOrHide(): void {
    rest();
    if (document.hidden) return;
    handlers.onState?.("opening");
    connect();
  }

  showOrHide();
  document.addEventListener("visibilitychange", showOrHide);
  return () => {
    document.removeEventListener("visibilitychange", showOrHide);
    rest();
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
