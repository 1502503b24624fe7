import type { Grant, TokenRule } from "../../capabilities/identities/identities.ts";
import type { Claims } from "./web-token.ts";

/** Returns what the first rule grants whose claims all fit. */
export const grantOf = (rules: readonly TokenRule[], claims: Claims): Grant | undefined =>
  rules.find((rule) =>
    Object.entries(rule.claims).every(([name, values]) => {
      const claimed = Object.hasOwn(claims, name) ? textsOf(claims[name]) : [];
      return claimed.some((text) => values.includes(text));
    }),
  );

const textsOf = (claim: unknown): string[] =>
  (Array.isArray(claim) ? (claim as unknown[]) : [claim]).flatMap((value) => textOf(value) ?? []);

/**
 * Returns the text that a rule compares. Numbers that JavaScript can't represent exactly have none, because
 * several of them become the same number.
 */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "boolean" || Number.isSafeInteger(value) ? String(value) : undefined;
}
