import { fanOut } from "../kernel/fan-out.ts";
import type { Limits } from "../../common/limits.ts";
import { ok, type Result } from "../kernel/refusal.ts";
import { reach, readTimeoutMs } from "./reach.ts";

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
    await fanOut([...parts.entries()], limits.fanOut, async ([index, { name, ask }]) => {
      if (!isOver) answers.set(index, await reach(partMs, { name }, ask));
    });
    return ok(null);
  });
  isOver = true;
  const missed: Result<T> | undefined = all.ok ? undefined : all;
  return parts.map((_, index) => answers.get(index) ?? missed ?? NEVER);
}

/** Every part has an answer when the fan-out has ended. */
const NEVER: Result<never> = { ok: false, refusal: { code: "INTERNAL", detail: "the part was not asked" } };
