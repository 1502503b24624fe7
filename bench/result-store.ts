import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Results on disk, line by line, so that a run which was stopped goes on where it was. `keyOf`: what is
 * measured anew replaces what it was.
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

  /** Whether it is done: what went wrong is measured again. */
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
