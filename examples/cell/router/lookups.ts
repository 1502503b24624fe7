import type { Bucket, Client, Found } from "leasehold/client";

export interface LookupAnswer {
  found: Found | undefined;
  /** The age of the answer. It is 0 if the coordinator was asked for it. */
  ageMs: number;
}

/** The maximum number of cached names. */
const MAX_NAMES = 1_000;

/**
 * Looks names up and caches the answers briefly. Free names are not cached, because somebody may claim them
 * at any moment.
 */
export class Lookups {
  readonly #records: Pick<Client["records"], "find">;
  readonly #keepMs: number;
  readonly #known = new Map<string, { found: Found; atMs: number }>();

  constructor(records: Pick<Client["records"], "find">, keepMs: number) {
    this.#records = records;
    this.#keepMs = keepMs;
  }

  /** Throws if the coordinator does not answer. */
  async find(bucket: Bucket): Promise<LookupAnswer> {
    const name = `${bucket.type} ${bucket.value}`;
    const known = this.#known.get(name);
    const ageMs = known === undefined ? Infinity : performance.now() - known.atMs;
    if (known !== undefined && ageMs < this.#keepMs) return { found: known.found, ageMs };
    const found = await this.#records.find(bucket);
    this.#known.delete(name);
    if (found !== undefined) this.#remember(name, found);
    return { found, ageMs: 0 };
  }

  #remember(name: string, found: Found): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MAX_NAMES && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(name, { found, atMs: performance.now() });
  }
}
