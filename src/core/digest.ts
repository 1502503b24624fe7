import { sha256 } from "@noble/hashes/sha2.js";
import { bucketTypes, sourceTypes, subjectTypes, type BucketTypeName } from "./registry.ts";
import type { DigestWords, Source, Subject } from "./messages.ts";

/** What a claim's digest covers: all that a cell's row decides. */
export interface DigestedClaim {
  type: BucketTypeName;
  canonical: string;
  /** As typed. */
  value: string;
  subject: Subject;
  source: Source;
}

const WORDS = [0, 1, 2, 3] as const;
const WORD_SIZE = 2 ** 32;

const utf8 = new TextEncoder();

/**
 * Of one claim. Cells compute the same from their rows, so it never changes: golden vectors hold it still. None of the parts can hold a control
 * character, so a line feed between them keeps them apart.
 */
export function digestWordsOf({ type, canonical, value, subject, source }: DigestedClaim): DigestWords {
  const facts = [
    bucketTypes[type].number,
    canonical,
    value,
    subjectTypes[subject.type].number,
    subject.id,
    sourceTypes[source.type].number,
    source.id,
  ];
  const digest = sha256(utf8.encode(facts.join("\n")));
  const view = new DataView(digest.buffer, digest.byteOffset);
  return [view.getUint32(0), view.getUint32(4), view.getUint32(8), view.getUint32(12)];
}

/** The digest of a set of claims: their number, and the sum of their words, each modulo 2^32. The order does not matter, and sets add up. */
export class DigestSum {
  #count = 0;
  #words: [number, number, number, number] = [0, 0, 0, 0];

  get count(): number {
    return this.#count;
  }

  /** 32 hexadecimal digits. */
  get hash(): string {
    return this.#words.map((word) => word.toString(16).padStart(8, "0")).join("");
  }

  /** `count` claims whose words add up to `words`; each word may be a sum of up to 2^20 claims that was not reduced yet. */
  add(words: DigestWords, count = 1): void {
    this.#count += count;
    for (const word of WORDS) this.#words[word] = (this.#words[word] + words[word]) % WORD_SIZE;
  }
}
