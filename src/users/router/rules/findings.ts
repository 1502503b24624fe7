import { MAX_FINDINGS } from "./limits.ts";
import type { RuleFinding } from "./types.ts";

/** Thrown for a document that is not a valid set of rules. */
export class RulesetError extends Error {
  /** Every mistake, in the order of the document. */
  readonly findings: readonly RuleFinding[];

  constructor(findings: readonly RuleFinding[]) {
    super(`invalid routing rules: ${findings.map(findingText).join("; ")}`);
    this.name = "RulesetError";
    this.findings = findings;
  }
}

const findingText = ({ field, message }: RuleFinding): string => `\`${field}\` ${message}`;

/** Collects the mistakes of a document, so that all of them can be corrected at once. */
export class Findings {
  readonly #list: RuleFinding[] = [];
  #left = 0;
  /** The id of the rule that is being read. */
  rule: string | undefined;

  add(field: string, message: string): void {
    if (this.#list.length === MAX_FINDINGS) {
      this.#left++;
      return;
    }
    this.#list.push({ field, message, ...(this.rule === undefined ? {} : { rule: this.rule }) });
  }

  get isEmpty(): boolean {
    return this.#list.length === 0;
  }

  all(): RuleFinding[] {
    if (this.#left === 0) return this.#list;
    return [...this.#list, { field: "rules", message: `has ${this.#left} more mistakes, not listed` }];
  }
}
