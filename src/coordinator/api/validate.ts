import type * as z from "zod";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import { fieldPath } from "./json.ts";

/**
 * Validates a value against a schema. The refusal names one wrong field. Unknown fields come first, because
 * an unknown field is often the misspelling of a missing one. `whole` is the name of the value itself.
 */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  whole: string,
): Result<z.output<Schema>> {
  const parsed = schema.safeParse(value, { error: messageOf });
  if (parsed.success) return ok(parsed.data);
  const { issues } = parsed.error;
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const field = fieldPath([...(issue?.path ?? []), ...unknown]) || whole;
  return refused("INVALID_ARGUMENT", `\`${field}\` ${issue?.message ?? "is not valid"}`, { field });
}

/** A message that completes a sentence that begins with the field. Schemas may have their own messages. */
function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is required" : `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return issue.input === undefined
        ? "is required"
        : `must be one of ${issue.values.map(String).join(", ")}`;
    case "unrecognized_keys":
      return "is not a known field; remove it or correct its name";
    case "too_small":
      return `must ${needs(issue.origin)} at least ${issue.minimum}${unitOf(issue.origin, issue.minimum)}`;
    case "too_big":
      return `must ${needs(issue.origin)} at most ${issue.maximum}${unitOf(issue.origin, issue.maximum)}`;
    default:
      return undefined;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};

const needs = (origin: string): string => (origin === "string" || origin === "array" ? "have" : "be");

function unitOf(origin: string, count: number | bigint): string {
  const unit = origin === "string" ? " character" : origin === "array" ? " item" : "";
  return unit === "" || Number(count) === 1 ? unit : `${unit}s`;
}
