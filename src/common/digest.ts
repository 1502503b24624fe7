import type { DigestWords, Source, Subject } from "../coordinator/kernel/messages.ts";
import { sha256Of, wordsOf } from "./sha256.ts";

/** The facts that a claim's digest covers: everything that the cell's row determines. */
export interface DigestedClaim {
  type: number;
  canonical: string;
  /** The spelling that was typed. */
  value: string;
  subject: Subject;
  source: Source;
  scope: string | null;
}

const WORDS = [0, 1, 2, 3] as const;
const WORD_SIZE = 2 ** 32;

/**
 * Returns the digest of one claim. Cells compute the same digest from their rows, so the result must never
 * change; golden vectors test that. The parts are joined with line feeds. That is unambiguous, because no
 * part can contain a control character. Only a claim with a scope has an eighth part.
 */
export function digestWordsOf({
  type,
  canonical,
  value,
  subject,
  source,
  scope,
}: DigestedClaim): DigestWords {
  const facts = [type, canonical, value, subject.type, subject.id, source.type, source.id];
  if (scope !== null) facts.push(scope);
  return wordsOf(sha256Of(facts.join("\n")));
}

/**
 * The digest of a set of claims: their number and the sum of their digest words, each modulo 2^32. The order
 * of the claims does not matter, and the digests of disjoint sets can be added.
 */
export class DigestSum {
  #count = 0;
  #words: [number, number, number, number] = [0, 0, 0, 0];

  get count(): number {
    return this.#count;
  }

  get words(): DigestWords {
    return [...this.#words];
  }

  /** The sum as 32 hexadecimal digits. */
  get hash(): string {
    return this.#words.map((word) => word.toString(16).padStart(8, "0")).join("");
  }

  /** Adds a set of claims by its own digest. */
  addHash(hash: string, count: number): void {
    this.add(wordsOf(hash), count);
  }

  /**
   * Adds `count` claims whose words add up to `words`. Each word may be an unreduced sum of up to 2^20
   * claims.
   */
  add(words: DigestWords, count = 1): void {
    this.#count += count;
    for (const word of WORDS) this.#words[word] = (this.#words[word] + words[word]) % WORD_SIZE;
  }
}
