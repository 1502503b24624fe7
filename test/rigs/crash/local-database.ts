import type { Claim } from "../../../demo/entry.ts";
import { LeaseDatabase } from "../../../demo/lease-database.ts";

const schema = `
  CREATE TABLE IF NOT EXISTS name (
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    subject INTEGER NOT NULL,
    source INTEGER NOT NULL,
    PRIMARY KEY (type, key)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS sequence (last INTEGER NOT NULL) STRICT;
  INSERT INTO sequence SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM sequence);
`;

/** The bucket types that the rig uses. */
export type NameType = "ROUTES" | "USERNAMES";

/** A row of a cell: a name that it owns. */
export interface Row {
  type: NameType;
  value: string;
  subject: number;
  source: number;
}

export const sourceTypes = {
  ROUTES: "RAILS_TABLE_ROUTES",
  USERNAMES: "RAILS_TABLE_USERS",
} as const satisfies Record<NameType, string>;

export const claimOf = ({ type, value, subject, source }: Row): Claim => ({
  bucket: { type, value },
  subject: { type: "USER", id: String(subject) },
  source: { type: sourceTypes[type], id: String(source) },
});

/** A cell's database, shared by all of its processes: its rows and its outstanding leases. */
export class LocalDatabase extends LeaseDatabase {
  constructor(path: string) {
    super(path, schema);
  }

  /** Returns an id that no process gets again. */
  nextId(): number {
    return Number(
      this.database.prepare("UPDATE sequence SET last = last + 1 RETURNING last").get()?.["last"],
    );
  }

  find(type: NameType, value: string): Row | undefined {
    return this.database
      .prepare("SELECT type, value, subject, source FROM name WHERE type = ? AND key = ?")
      .get(type, value.toLowerCase()) as Row | undefined;
  }

  rows(): Row[] {
    return this.database
      .prepare("SELECT type, value, subject, source FROM name ORDER BY type, key")
      .all() as unknown as Row[];
  }

  insert({ type, value, subject, source }: Row): void {
    this.#change(
      "INSERT INTO name (type, key, value, subject, source) VALUES (?, ?, ?, ?, ?)",
      type,
      value.toLowerCase(),
      value,
      subject,
      source,
    );
  }

  delete({ type, value }: Row): void {
    this.#change("DELETE FROM name WHERE type = ? AND key = ?", type, value.toLowerCase());
  }

  replace({ type, value, subject, source }: Row): void {
    const key = value.toLowerCase();
    this.#change(
      "UPDATE name SET value = ?, subject = ?, source = ? WHERE type = ? AND key = ?",
      value,
      subject,
      source,
      type,
      key,
    );
  }

  /** Changes exactly one row. The lease guarantees that no one else has changed it. */
  #change(sql: string, ...values: (string | number)[]): void {
    const { changes } = this.database.prepare(sql).run(...values);
    if (Number(changes) !== 1)
      throw new Error(`${changes} rows instead of one: ${sql} ${JSON.stringify(values)}`);
  }
}
