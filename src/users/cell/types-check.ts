import { isLeaseholdError } from "../client/errors.ts";
import { declarationOf, entryText, typesOf } from "../../common/types/document.ts";
import { isSameType, Types, type TypeEntry } from "../../common/types/types.ts";

/** How long a failed comparison waits for the next call of the cell. */
const RETRY_MS = 60_000;

/**
 * Compares the types of a cell with those of its deployment: once, beside its first call, or as soon as the
 * coordinator answers. No call waits for it or depends on it, because the coordinator checks every begin.
 */
export class TypesCheck {
  readonly #own: readonly TypeEntry[];
  readonly #read: () => Promise<unknown>;
  readonly #report: (differences: string[]) => void;
  /** When a call may start the next attempt, by `performance.now()`. */
  #nextMs = 0;

  /**
   * @param own the types that the cell may send
   * @param read reads the document with the types of the deployment
   */
  constructor(
    own: readonly TypeEntry[],
    read: () => Promise<unknown>,
    report: (differences: string[]) => void,
  ) {
    this.#own = own;
    this.#read = read;
    this.#report = report;
  }

  /** Starts the comparison, if it is due. */
  start(): void {
    if (performance.now() < this.#nextMs) return;
    this.#nextMs = performance.now() + RETRY_MS;
    // Not as work that a flush waits for: on Workers, it may be dropped with the request that started it.
    void this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    try {
      const deployed = typesOf(await this.#read());
      this.#nextMs = Number.POSITIVE_INFINITY;
      // A rule that only a newer version knows cannot be compared.
      const differences = deployed.ok
        ? differencesOf(this.#own, new Types(deployed.value))
        : [`the types of the deployment cannot be read: ${deployed.refusal.detail}`];
      if (differences.length > 0) this.#report(differences);
    } catch (error) {
      // An older coordinator cannot list its types.
      if (isLeaseholdError(error) && error.code === "NOT_FOUND") this.#nextMs = Number.POSITIVE_INFINITY;
    }
  }
}

/** Answers a sentence for each type that the deployment lacks, or has with another number or rule. */
function differencesOf(own: readonly TypeEntry[], deployed: Types): string[] {
  return own.flatMap((entry) => {
    const other = deployed.named(entry.kind, entry.name);
    const what = entryText(entry.kind, entry.name);
    if (other === undefined) return [`${what} is not declared by the deployment`];
    return isSameType(entry, other)
      ? []
      : [`${what} is ${textOf(entry)} in this cell, and ${textOf(other)} in the deployment`];
  });
}

const textOf = (entry: TypeEntry): string => JSON.stringify(declarationOf(entry));
