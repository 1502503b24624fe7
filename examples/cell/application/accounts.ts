/** The actions of users. Each one is one local transaction and one lease. */
import { desc, eq, or, sql } from "drizzle-orm";
import type { ClaimTransaction } from "leasehold/cell";
import { runAction, type CrashPoint } from "../protocol/action.ts";
import type { Orm, Tx } from "./database.ts";
import type { OpenCell } from "./open-cell.ts";
import { emails, routes, users } from "./schema.ts";

export interface Account {
  id: number;
  username: string;
  /** Null if somebody changed the database without the cell. */
  email: string | null;
  route: string | null;
  createdAt: Date;
}

/** What became of the old username: free for everybody, kept in another spelling, the same, or not known. */
export type OldName = "free" | "kept" | "same" | "unknown";

/** The number of accounts that a page shows. */
const LISTED = 50;

export class Accounts {
  readonly #open: Pick<OpenCell, "cell" | "client" | "orm">;

  constructor(open: Pick<OpenCell, "cell" | "client" | "orm">) {
    this.#open = open;
  }

  /** Claims three names, all or none. */
  signUp({ username, email }: { username: string; email: string }, crash?: CrashPoint): Promise<number> {
    return this.#transaction({ what: "Sign-up", crash }, async (tx) => {
      const user = await tx.insert(users, { username });
      await tx.insert(emails, { userId: user.id, email });
      await tx.insert(routes, { userId: user.id, path: username });
      return user.id;
    });
  }

  /** Renames the username and the route, both or none. */
  async rename({ id, username: old }: Account, username: string): Promise<OldName> {
    await this.#transaction({ what: "Rename" }, async (tx) => {
      await tx.update(users, eq(users.id, id), { username });
      await tx.update(routes, eq(routes.userId, id), { path: username });
    });
    return old === username ? "same" : this.#after(old, username);
  }

  /**
   * Another spelling can be the same name, and only the coordinator decides which are: case is not the only
   * difference that it ignores. So this asks who has the old name now.
   */
  async #after(old: string, username: string): Promise<OldName> {
    try {
      const found = await this.#open.client.records.find({ type: "USERNAMES", value: old });
      return found?.record.bucket.value === username ? "kept" : "free";
    } catch {
      // The account is renamed in any case.
      return "unknown";
    }
  }

  /**
   * Deletes the children first. The SDK does not see cascading deletes, so it would not release their names.
   */
  delete(id: number): Promise<void> {
    return this.#transaction({ what: "Deletion" }, async (tx) => {
      await tx.delete(routes, eq(routes.userId, id));
      await tx.delete(emails, eq(emails.userId, id));
      await tx.delete(users, eq(users.id, id));
    });
  }

  list(): Promise<Account[]> {
    return select(this.#open.orm).orderBy(desc(users.id)).limit(LISTED);
  }

  async find(id: number): Promise<Account | undefined> {
    const [account] = await select(this.#open.orm).where(eq(users.id, id));
    return account;
  }

  /**
   * Prefers the exact spelling. Another case also matches, because a router may still have cached an earlier
   * spelling.
   */
  async findByRoute(path: string): Promise<Account | undefined> {
    const found = await select(this.#open.orm).where(
      or(eq(routes.path, path), eq(sql`lower(${routes.path})`, path.toLowerCase())),
    );
    return found.find(({ route }) => route === path) ?? found[0];
  }

  #transaction<T>(
    action: { what: string; crash?: CrashPoint | undefined },
    body: (tx: ClaimTransaction<Tx>) => Promise<T>,
  ): Promise<T> {
    return runAction(action, () => this.#open.cell.transaction(body));
  }
}

const columns = {
  id: users.id,
  username: users.username,
  email: emails.email,
  route: routes.path,
  createdAt: users.createdAt,
};

const select = (orm: Orm) =>
  orm
    .select(columns)
    .from(users)
    .leftJoin(emails, eq(emails.userId, users.id))
    .leftJoin(routes, eq(routes.userId, users.id))
    .$dynamic();
