const MAX_DEPTH = 5;

/** An error and what it was caused by: drizzle wraps what the driver throws. */
export function* causesOf(error: unknown): Generator<Error> {
  for (
    let each: unknown = error, depth = 0;
    each instanceof Error && depth < MAX_DEPTH;
    each = each.cause, depth += 1
  )
    yield each;
}
