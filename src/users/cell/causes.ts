import { messageOf } from "../client/answer.ts";

const MAX_DEPTH = 5;

/** An error and its causes, because drizzle wraps the errors of drivers. */
export function* causesOf(error: unknown): Generator<Error> {
  for (
    let each: unknown = error, depth = 0;
    each instanceof Error && depth < MAX_DEPTH;
    each = each.cause, depth += 1
  )
    yield each;
}

/**
 * Why something failed. An error of drizzle only repeats the statement with its values, which may be names of
 * people, so its cause says why.
 */
export function reasonOf(error: unknown): string {
  const isOfDrizzle = error instanceof Error && "query" in error && "params" in error;
  return messageOf(isOfDrizzle ? (error.cause ?? error) : error);
}
