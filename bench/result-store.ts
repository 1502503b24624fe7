import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Stores results on disk, one per line, so that an interrupted run can continue. A new result replaces an
 * earlier one with the same key.
 */
export class ResultStore<Key, Result extends Key & { errors: number }> {
  readonly #path: string;
  readonly #keyOf: (key: Key) => string;
  readonly #byKey = new Map<string, Result>();

  constructor(path: string, keyOf: (key: Key) => string, fresh: boolean) {
    this.#path = path;
    this.#keyOf = keyOf;
    mkdirSync(dirname(path), { recursive: true });
    if (fresh) rmSync(path, { force: true });
    const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
    for (const result of lines.map((line) => JSON.parse(line) as Result))
      this.#byKey.set(keyOf(result), result);
  }

  /** Whether there is a result without errors. Measurements with errors are repeated. */
  has(key: Key): boolean {
    return this.get(key)?.errors === 0;
  }

  get(key: Key): Result | undefined {
    return this.#byKey.get(this.#keyOf(key));
  }

  add(result: Result): void {
    this.#byKey.set(this.#keyOf(result), result);
    appendFileSync(this.#path, `${JSON.stringify(result)}\n`);
  }

  get all(): readonly Result[] {
    return [...this.#byKey.values()];
  }
}
