/**
 * What this application takes for a name. When two names are the same is not its business: the coordinator
 * knows.
 */

export const MAX_USERNAME = 40;
export const MAX_EMAIL = 254;

/** Also the path of the profile: so no slash, and nothing that the router keeps for itself. */
const USERNAME = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]*$/u;
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}]+\.[^\s@\p{C}]+$/u;

/** Undefined: it is fine. Otherwise words that follow the label. */
export function usernameProblem(username: string): string | undefined {
  if (username === "") return "is missing";
  if (username.length > MAX_USERNAME) return `may have ${MAX_USERNAME} characters at most`;
  return USERNAME.test(username)
    ? undefined
    : "may have letters, digits, - and _, and starts with a letter or digit";
}

export function emailProblem(email: string): string | undefined {
  if (email === "") return "is missing";
  if (email.length > MAX_EMAIL) return `may have ${MAX_EMAIL} characters at most`;
  return EMAIL.test(email) ? undefined : "does not look like one: name@example.com";
}
