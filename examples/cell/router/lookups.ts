import type { Client, Found } from "leasehold/client";

export interface LookupAnswer {
  found: Found | undefined;
  /** How old the answer is; 0 when the coordinator was just asked. */
  ageMs: number;
}

/** Names that are remembered at a time. */
const MAX_NAMES = 1_000;

/**
 * Where names are, remembered for a moment. That nobody has a name is not remembered: the next moment
 * somebody may.
 */
export class Lookups {
  readonly #records: Pick<Client["records"], "find">;
  readonly #keepMs: number;
  readonly #known = new Map<string, { found: Found; atMs: number }>();

  constructor(records: Pick<Client["records"], "find">, keepMs: number) {
    this.#records = records;
    this.#keepMs = keepMs;
  }

  /** Throws when nobody can tell. */
  async find(route: string): Promise<LookupAnswer> {
    const known = this.#known.get(route);
    const ageMs = known === undefined ? Infinity : performance.now() - known.atMs;
    if (known !== undefined && ageMs < this.#keepMs) return { found: known.found, ageMs };
    const found = await this.#records.find({ type: "ROUTES", value: route });
    this.#known.delete(route);
    if (found !== undefined) this.#remember(route, found);
    return { found, ageMs: 0 };
  }

  #remember(route: string, found: Found): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MAX_NAMES && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(route, { found, atMs: performance.now() });
  }
}
