// One shape for whatever goes wrong on the way to the server and back.

const UNREACHABLE = "unreachable";
/** After so long the page tries again by itself. */
export const AGAIN_MS = 5_000;

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly field: string | null = null,
    readonly requestId: string | null = null,
  ) {
    super(detail || title);
  }

  get isUnreachable(): boolean {
    return this.code === UNREACHABLE;
  }
}

export function unreachable(): Problem {
  return new Problem(
    0,
    UNREACHABLE,
    "The server does not answer",
    "It may be restarting, or this machine is offline. The page tries again by itself.",
  );
}

export async function problemOf(answer: Response): Promise<Problem> {
  const text = (name: string, value: unknown): string =>
    typeof value === "string" ? value : name === "title" ? answer.statusText || "The server refused" : "";
  try {
    const body = (await answer.json()) as Record<string, unknown>;
    return new Problem(
      answer.status,
      text("code", body["code"]) || String(answer.status),
      text("title", body["title"]),
      text("detail", body["detail"]),
      text("field", body["field"]) || null,
      text("request_id", body["request_id"]) || answer.headers.get("x-request-id"),
    );
  } catch {
    return new Problem(answer.status, String(answer.status), answer.statusText || "The server refused", "");
  }
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "page-error", "The page made a mistake", error instanceof Error ? error.message : String(error));
}
