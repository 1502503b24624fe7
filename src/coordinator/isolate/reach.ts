import { ask } from "../kernel/ask.ts";
import type { Limits } from "../../common/limits.ts";
import { refused, ok, type Result } from "../kernel/refusal.ts";
import { wallClock } from "../runtime.ts";
import type { Failure } from "../api/problem.ts";
import { fanOut } from "../kernel/fan-out.ts";

/**
 * Whom a call asks, for the answer if its outcome is unknown (M2). `name` completes "... cannot be reached"
 * and "... did not answer in time".
 */
interface Target {
  name: string;
  /** What the caller should do then. */
  advice?: string;
}

export const LEDGER = "the cell's ledger";
export const DIRECTORY = "the directory";

/**
 * The timeout of a read. Before an object answers, it may have to ask a ledger, after the question that it
 * has just sent there is answered (B8).
 */
export const readTimeoutMs = ({ inquiryTimeoutMs, exchangeTimeoutMs }: Limits): number =>
  2 * inquiryTimeoutMs + exchangeTimeoutMs;

/** Calls an object. An unknown answer becomes 503, or 504 after the timeout. */
export async function reach<T>(
  timeoutMs: number,
  { name, advice }: Target,
  work: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const answer = await ask(wallClock, timeoutMs, work);
  if (answer.kind === "ok") return { ok: true, value: answer.value };
  if (answer.kind === "refused") return { ok: false, refusal: answer.refusal };
  const more = advice === undefined ? "" : `: ${advice}`;
  return answer.timedOut === true
    ? refused("DEADLINE_EXCEEDED", `${name} did not answer in time${more}`)
    : refused("UNAVAILABLE", `${name} cannot be reached${more}`, { retryAfterMs: 1_000 });
}

/** Adds fields to the refusal of a result. */
/** The error of D1 is only for the log, so this replaces it. */
export const UNREADABLE_PROJECTION = {
  detail: "the projection in D1 cannot be read; try again later",
} as const;

export function withFailure<T>(result: Result<T>, more: Partial<Failure>): Result<T> {
  return result.ok ? result : { ok: false, refusal: { ...result.refusal, ...more } };
}

/** A part to be asked. `name` completes "... cannot be reached". */
export interface AskedPart<T> {
  name: string;
  ask: () => Promise<Result<T>>;
}

/**
 * Asks parts a few at a time, and returns one result per part, in order. Parts that have not answered in time
 * have failed, and those that were not asked yet are not asked any more.
 *
 * @param allMs the time that all parts have together; by default that of one read
 */
export async function askParts<T>(
  parts: readonly AskedPart<T>[],
  limits: Limits,
  allMs = readTimeoutMs(limits),
): Promise<readonly Result<T>[]> {
  const answers = new Map<number, Result<T>>();
  let isOver = false;
  // With half of the time for one part, a whole batch of parts that hang leaves time for the others.
  const partMs = readTimeoutMs(limits) / 2;
  const all = await reach(allMs, { name: "the part" }, async () => {
    await fanOut([...parts.entries()], limits.fanOut, async ([index, part]) => {
      if (!isOver) answers.set(index, await reach(partMs, part, part.ask));
    });
    return ok(null);
  });
  isOver = true;
  const missed: Result<T> | undefined = all.ok ? undefined : all;
  return parts.map((_, index) => answers.get(index) ?? missed ?? NEVER);
}

/** Every part has an answer when the fan-out has ended. */
const NEVER: Result<never> = { ok: false, refusal: { code: "INTERNAL", detail: "the part was not asked" } };
