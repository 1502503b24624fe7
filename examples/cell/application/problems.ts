import { toValidationErrors, type FieldProblem } from "leasehold/cell";
import type { Problems } from "../web/forms.ts";

const words: Record<FieldProblem, string> = {
  taken: "has already been taken",
  try_again: "is being changed by somebody right now: try again in a moment",
  invalid: "is not a possible name: do its letters come from different scripts, or are some invisible?",
  failed: "cannot be changed at the moment",
};

/** A route is never typed: it follows the username. */
const fieldOf: Readonly<Record<string, string>> = { username: "username", path: "username", email: "email" };
const order = ["username", "email"];

/** What to say beside which field. Throws what is not about a field. */
export function problemsOf(error: unknown): Problems {
  const found = new Map<string, string>();
  for (const { field, problem } of toValidationErrors(error)) {
    const name = fieldOf[field] ?? field;
    // Of two problems with one field the one that stays is the one to tell.
    if (!found.has(name) || problem === "taken") found.set(name, words[problem]);
  }
  if (found.size === 0) throw error;
  return new Map(order.flatMap((name) => (found.has(name) ? [[name, found.get(name) ?? ""] as const] : [])));
}
