/** The actions of people. Each one is one local transaction and one lease. */
import { desc, eq, or, sql } from "drizzle-orm";
import type { ClaimTransaction } from "leasehold/cell";
import { runAction, type CrashPoint } from "../protocol/action.ts";
import type { Orm, Tx } from "./database.ts";
import type { OpenCell } from "./open-cell.ts";
import { emails, people, stores } from "./schema.ts";

export interface Account {
  id: number;
  handle: string;
  /** Null if somebody changed the database without the cell. */
  email: string | null;
  /** Null if the person has no store. */
  store: string | null;
  createdAt: Date;
}

/** What became of the old handle: free for everybody, kept in another spelling, the same, or not known. */
export type OldName = "free" | "kept" | "same" | "unknown";

/** The number of accounts that a page shows. */
const LISTED = 50;

export class Accounts {
  readonly #open: Pick<OpenCell, "cell" | "client" | "orm">;

  constructor(open: Pick<OpenCell, "cell" | "client" | "orm">) {
    this.#open = open;
  }

  /** Claims two names, both or none. */
  signUp({ handle, email }: { handle: string; email: string }, crash?: CrashPoint): Promise<number> {
    return this.#transaction({ what: "Sign-up", crash }, async (tx) => {
      const person = await tx.insert(people, { handle });
      await tx.insert(emails, { personId: person.id, email });
      return person.id;
    });
  }

  /** One lease frees the old handle and claims the new one. */
  async rename({ id, handle: old }: Account, handle: string): Promise<OldName> {
    await this.#transaction({ what: "Rename" }, async (tx) => {
      await tx.update(people, eq(people.id, id), { handle });
    });
    return old === handle ? "same" : this.#after(old, handle);
  }

  /**
   * Another spelling can be the same name, and only the coordinator decides which are: case is not the only
   * difference that it ignores. So this asks who has the old name now.
   */
  async #after(old: string, handle: string): Promise<OldName> {
    try {
      const found = await this.#open.client.records.find({ type: "HANDLES", value: old });
      return found?.record.bucket.value === handle ? "kept" : "free";
    } catch {
      // The account is renamed in any case.
      return "unknown";
    }
  }

  /** Claims the name of a store. It changes nothing if the person has one, or is gone. */
  openStore(id: number, name: string): Promise<void> {
    return this.#transaction({ what: "Store opening" }, async (tx) => {
      // The lock makes a second request of the same person wait for the first one.
      await tx.db.select().from(people).where(eq(people.id, id)).for("update");
      const [person] = await select(tx.db).where(eq(people.id, id));
      if (person?.store === null) await tx.insert(stores, { personId: id, name });
    });
  }

  closeStore(id: number): Promise<void> {
    return this.#transaction({ what: "Store closing" }, async (tx) => {
      await tx.delete(stores, eq(stores.personId, id));
    });
  }

  /**
   * Deletes the children first. The SDK does not see cascading deletes, so it would not release their names.
   */
  delete(id: number): Promise<void> {
    return this.#transaction({ what: "Deletion" }, async (tx) => {
      await tx.delete(stores, eq(stores.personId, id));
      await tx.delete(emails, eq(emails.personId, id));
      await tx.delete(people, eq(people.id, id));
    });
  }

  list(): Promise<Account[]> {
    return select(this.#open.orm).orderBy(desc(people.id)).limit(LISTED);
  }

  async find(id: number): Promise<Account | undefined> {
    const [account] = await select(this.#open.orm).where(eq(people.id, id));
    return account;
  }

  /** Prefers the exact spelling. Others match, too, because the router looks a name up in any spelling. */
  async findByHandle(handle: string): Promise<Account | undefined> {
    const found = await select(this.#open.orm).where(
      or(eq(people.handle, handle), eq(sql`lower(${people.handle})`, folded(handle))),
    );
    return found.find((account) => account.handle === handle) ?? found[0];
  }

  async findByStore(name: string): Promise<Account | undefined> {
    const [account] = await select(this.#open.orm).where(eq(sql`lower(${stores.name})`, folded(name)));
    return account;
  }

  #transaction<T>(
    action: { what: string; crash?: CrashPoint | undefined },
    body: (tx: ClaimTransaction<Tx>) => Promise<T>,
  ): Promise<T> {
    return runAction(action, () => this.#open.cell.transaction(body));
  }
}

/** Most spellings of a name. The coordinator ignores more differences. */
const folded = (name: string): string => name.normalize("NFKC").toLowerCase();

const columns = {
  id: people.id,
  handle: people.handle,
  email: emails.email,
  store: stores.name,
  createdAt: people.createdAt,
};

const select = (orm: Pick<Orm, "select">) =>
  orm
    .select(columns)
    .from(people)
    .leftJoin(emails, eq(emails.personId, people.id))
    .leftJoin(stores, eq(stores.personId, people.id))
    .$dynamic();
