import type { Io } from "../framework/io.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Target } from "./target.ts";

export interface RawRequest {
  method: string;
  /** From the slash on, with the query. */
  path: string;
  body?: string | undefined;
  /** A reconciliation takes two minutes. */
  timeoutMs?: number;
}

export interface RawAnswer {
  status: number;
  text: string;
  header: (name: string) => string | null;
  /** How long the answer took. */
  tookMs: number;
  receivedAtMs: number;
}

const TIMEOUT_MS = 30_000;

/**
 * Sends one request as it is, without retries.
 *
 * @throws when there was no answer
 */
export async function send(
  io: Pick<Io, "fetch" | "signal" | "now">,
  { url, key }: Pick<Target, "url" | "key">,
  { method, path, body, timeoutMs = TIMEOUT_MS }: RawRequest,
): Promise<RawAnswer> {
  // The key must not get to another host, as with `//example.com`.
  if (
    !path.startsWith("/") ||
    !URL.canParse(url + path) ||
    new URL(url + path).origin !== new URL(url).origin
  )
    throw usageError("PATH must start with a slash, such as /v1/limits");
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(timeoutMs)]);
  const startedAtMs = io.now();
  try {
    const response = await io.fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      signal,
      redirect: "manual",
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    const receivedAtMs = io.now();
    const header = (name: string): string | null => response.headers.get(name);
    return { status: response.status, text, header, tookMs: receivedAtMs - startedAtMs, receivedAtMs };
  } catch (error) {
    throw new CommandError(`${url} does not answer: ${reasonOf(error)}`, exitCodes.unavailable, [
      "leasehold doctor",
    ]);
  }
}

/** The cause too, because `fetch failed` alone does not name it. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : "";
  return `${messageOf(error)}${cause}`;
}

/** The body of an answer, if it is a JSON object. */
export function bodyOf({ text }: Pick<RawAnswer, "text">): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
