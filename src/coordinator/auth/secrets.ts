import { refused, type Result } from "../kernel/refusal.ts";

/** The minimum length in characters. Written in hex, that is at least 128 bits. */
const MIN_SECRET_LENGTH = 32;

export interface Secrets {
  current: string;
  /** Still accepted while the secret is rotated. Nothing new is signed with it. */
  previous: string | undefined;
}

interface SecretVariables {
  LEASEHOLD_SIGNING_SECRET?: string;
  LEASEHOLD_PREVIOUS_SIGNING_SECRET?: string;
}

/**
 * Reads the signing secrets. If one is missing or too short, the deployment refuses every call that needs a
 * key.
 */
export function secretsOf(variables: SecretVariables): Result<Secrets> {
  const current = variables.LEASEHOLD_SIGNING_SECRET ?? "";
  const previous = variables.LEASEHOLD_PREVIOUS_SIGNING_SECRET ?? "";
  if (current === "")
    return refused(
      "UNAVAILABLE",
      "LEASEHOLD_SIGNING_SECRET is not set, so keys can be neither made nor verified; set this secret",
    );
  if (current.length < MIN_SECRET_LENGTH) return refused("UNAVAILABLE", tooShort("LEASEHOLD_SIGNING_SECRET"));
  if (previous !== "" && previous.length < MIN_SECRET_LENGTH)
    return refused("UNAVAILABLE", tooShort("LEASEHOLD_PREVIOUS_SIGNING_SECRET"));
  return { ok: true, value: { current, previous: previous === "" ? undefined : previous } };
}

const tooShort = (variable: string): string =>
  `${variable} must have at least ${MIN_SECRET_LENGTH} characters; until then, keys can be neither made ` +
  "nor verified";
