/** The application's own rules for names. The coordinator decides which names are the same. */

export const MAX_HANDLE = 40;
export const MAX_EMAIL = 254;
export const MAX_STORE = 30;

/** What the rule of STORES in leasehold.types.json allows, in words that follow the label of the field. */
export const storeRule =
  "must have 3 to 30 characters: letters from a to z and digits, with single hyphens between them";

/**
 * The handle is also the address of the profile, so it has no slash and cannot start like the router's own
 * paths.
 */
const HANDLE = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]*$/u;
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}]+\.[^\s@\p{C}]+$/u;

/** Returns undefined for a valid handle, and otherwise words that follow the label of the field. */
export function handleProblem(handle: string): string | undefined {
  if (handle === "") return "is missing";
  if (handle.length > MAX_HANDLE) return `must have at most ${MAX_HANDLE} characters`;
  return HANDLE.test(handle)
    ? undefined
    : "must consist of letters, digits, - and _, and start with a letter or digit";
}

export function emailProblem(email: string): string | undefined {
  if (email === "") return "is missing";
  if (email.length > MAX_EMAIL) return `must have at most ${MAX_EMAIL} characters`;
  return EMAIL.test(email) ? undefined : "must look like name@example.com";
}

/** The declared rule decides which names a store can have. This only refuses what no database can store. */
export function storeProblem(name: string): string | undefined {
  if (name === "") return "is missing";
  return /\p{C}/u.test(name) ? storeRule : undefined;
}
