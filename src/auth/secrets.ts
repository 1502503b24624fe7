import { refused, type Result } from "../core/refusal.ts";

/** At least as many bits as a SHA-256 key can use, when the secret is written in hex or better. */
const MIN_SECRET_LENGTH = 32;

export interface Secrets {
  current: string;
  /** Still accepted while it is being rotated out; nothing new is signed with it. */
  previous: string | undefined;
}

interface SecretVariables {
  LEASEHOLD_SIGNING_SECRET?: string;
  LEASEHOLD_PREVIOUS_SIGNING_SECRET?: string;
}

/** A deployment without a proper secret is closed, never open. */
export function secretsOf(variables: SecretVariables): Result<Secrets> {
  const current = variables.LEASEHOLD_SIGNING_SECRET ?? "";
  const previous = variables.LEASEHOLD_PREVIOUS_SIGNING_SECRET ?? "";
  if (current === "")
    return refused(
      "UNAVAILABLE",
      "LEASEHOLD_SIGNING_SECRET is not set: keys can be neither made nor checked",
    );
  if (current.length < MIN_SECRET_LENGTH) return refused("UNAVAILABLE", tooShort("LEASEHOLD_SIGNING_SECRET"));
  if (previous !== "" && previous.length < MIN_SECRET_LENGTH)
    return refused("UNAVAILABLE", tooShort("LEASEHOLD_PREVIOUS_SIGNING_SECRET"));
  return { ok: true, value: { current, previous: previous === "" ? undefined : previous } };
}

const tooShort = (variable: string): string =>
  `${variable} must have at least ${MIN_SECRET_LENGTH} characters: keys can be neither made nor checked`;
