import type { Context } from "hono";

/** Returns a form's fields as text. Missing fields are empty, and long ones are cut. */
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

/** This is longer than every valid field, so that a field that is too long still fails its own check. */
const MAX_LENGTH = 1_000;
