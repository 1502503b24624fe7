import { toValidationErrors, type FieldProblem } from "leasehold/cell";
import { storeRule } from "./names.ts";
import type { Problems } from "../web/forms.ts";

const words: Record<FieldProblem, string> = {
  taken: "has already been taken",
  try_again: "is being changed by somebody else; try again in a moment",
  invalid: "is not a possible name; use letters of one script and no invisible characters",
  failed: "cannot be changed at the moment; try again later",
};

/** The order of the fields in the forms. */
const order = ["handle", "email", "name"];

const textOf = (field: string, problem: FieldProblem): string =>
  field === "name" && problem === "invalid" ? storeRule : words[problem];

/** Returns the text to show beside each field. Rethrows errors that are not about a field. */
export function problemsOf(error: unknown): Problems {
  const found = new Map<string, string>();
  for (const { field, problem } of toValidationErrors(error)) {
    // If a field has several problems, show that it is taken, because a retry does not help then.
    if (!found.has(field) || problem === "taken") found.set(field, textOf(field, problem));
  }
  if (found.size === 0) throw error;
  return new Map(order.flatMap((name) => (found.has(name) ? [[name, found.get(name) ?? ""] as const] : [])));
}
