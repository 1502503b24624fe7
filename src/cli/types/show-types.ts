import type { Context } from "../framework/context.ts";
import { toJson } from "../../common/text/escape.ts";
import type { Result } from "../output/result.ts";

export async function showTypes(context: Context): Promise<Result> {
  const { version, types, in_use: inUse } = await (await context.client()).types.get();
  const names = Object.entries(inUse).flatMap(([list, some]) => some.map((name) => `${list}.${name}`));
  return {
    document: { version, types, in_use: inUse },
    text: () => toJson(types, 2),
    notes: [`In use, so unchangeable: ${names.join(", ") || "none"}.`],
  };
}
