import type { Context } from "hono";

/** A form's fields as text; what is not there is empty, and what is far too long is cut off. */
export async function readForm<Name extends string>(
  context: Context,
  names: readonly Name[],
): Promise<Record<Name, string>> {
  const body = await context.req.parseBody();
  const text = (name: Name): string => {
    const given = body[name];
    return typeof given === "string" ? given.slice(0, MAX_LENGTH).trim() : "";
  };
  return Object.fromEntries(names.map((name) => [name, text(name)])) as Record<Name, string>;
}

/** No field is that long; a little more, so that it can be said that it is too long. */
const MAX_LENGTH = 1_000;
