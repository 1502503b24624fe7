import type { Entry, Kind } from "./entry.ts";
import { LeaseDatabase } from "./lease-database.ts";

const schema = `
  CREATE TABLE IF NOT EXISTS users (
    id INTEGER PRIMARY KEY, username TEXT NOT NULL COLLATE NOCASE UNIQUE
  ) STRICT;
  CREATE TABLE IF NOT EXISTS routes (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL COLLATE NOCASE UNIQUE, kind TEXT NOT NULL,
    user_id INTEGER REFERENCES users (id)
  ) STRICT;
`;

/** The database of a cell in the demo: people with their routes, and routes of groups and projects. */
export class LocalDatabase extends LeaseDatabase {
  #lastId: number;

  constructor(path: string) {
    super(path, schema);
    this.#lastId = this.#number(
      "SELECT coalesce(max(id), 0) AS value FROM (SELECT id FROM users UNION ALL SELECT id FROM routes)",
    );
  }

  /**
   * Returns an id before its row is written, as a sequence does, so that a lease can name its source. A
   * process never gets the same id twice.
   */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  insert({ kind, name, routeId, userId }: Entry): void {
    if (userId !== undefined) this.#run("INSERT INTO users (id, username) VALUES (?, ?)", userId, name);
    this.#run(
      "INSERT INTO routes (id, path, kind, user_id) VALUES (?, ?, ?, ?)",
      routeId,
      name,
      kind,
      userId ?? null,
    );
  }

  delete({ routeId, userId }: Entry): void {
    this.#run("DELETE FROM routes WHERE id = ?", routeId);
    if (userId !== undefined) this.#run("DELETE FROM users WHERE id = ?", userId);
  }

  rename({ routeId, userId }: Entry, name: string): void {
    this.#run("UPDATE routes SET path = ? WHERE id = ?", name, routeId);
    if (userId !== undefined) this.#run("UPDATE users SET username = ? WHERE id = ?", name, userId);
  }

  entries(): Entry[] {
    const rows = this.database.prepare("SELECT id, path, kind, user_id FROM routes ORDER BY id").all();
    return rows.map(({ id, path, kind, user_id: userId }) => ({
      kind: kind as Kind,
      name: String(path),
      routeId: Number(id),
      userId: userId === null ? undefined : Number(userId),
    }));
  }

  #run(sql: string, ...values: (string | number | null)[]): void {
    this.database.prepare(sql).run(...values);
  }

  #number(sql: string): number {
    return Number(this.database.prepare(sql).get()?.["value"]);
  }
}
