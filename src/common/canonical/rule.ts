/** How the values of a bucket type become canonical, in addition to the rules for all types. */
export interface CanonicalRule {
  /**
   * `path`: slashes separate segments, and each segment is a name. No segment may be empty, `.` or `..`,
   * because URLs cannot carry those. `email`: an address has only one spelling of its mailbox, with a domain
   * in ASCII. `plain`: the value is one name.
   */
  readonly form: "plain" | "path" | "email" | "domain";
  /**
   * `single`: people compare the names by eye. A name has only characters that Unicode allows in
   * identifiers, of one script, and look-alikes of other scripts count as the same. `any`: all assigned,
   * visible characters are allowed.
   */
  readonly script: "single" | "any";
  /**
   * `folded`: `Ada` and `ada` are the same name. `exact`: they are two names. An exact name of a single
   * script has only ASCII, because Unicode lists look-alikes of folded text only.
   */
  readonly case: "folded" | "exact";
  /** A regular expression in RE2's syntax. It must match the whole canonical form. */
  readonly pattern?: string;
  /** The least number of code points that the canonical form has. */
  readonly minLength?: number;
  /** The largest number of code points that the canonical form has. */
  readonly maxLength?: number;
}
