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
