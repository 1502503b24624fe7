/** Ways to bring rows and claims apart: what no application should do, and what happens all the same. */
import { sql } from "drizzle-orm";
import { runAction } from "../protocol/action.ts";
import type { Account } from "./accounts.ts";
import type { OpenCell } from "./open-cell.ts";

export const drifts = {
  claim: "Destroy the claim of its username, and leave the row",
  row: "Change its username with plain SQL, and leave the claim",
  insert: "Insert another user with plain SQL, without a claim",
} as const;

export type Drift = keyof typeof drifts;

export const isDrift = (given: string): given is Drift => Object.hasOwn(drifts, given);

/** Answers what was done, in a sentence. */
export function plantDrift(
  { client, orm }: Pick<OpenCell, "client" | "orm">,
  drift: Drift,
  { id, username }: Account,
): Promise<string> {
  return runAction({ what: "Planted drift" }, async () => {
    const other = `${username}-${Date.now().toString(36)}`;
    switch (drift) {
      case "claim": {
        const source = { type: "RAILS_TABLE_USERS", id: String(id) } as const;
        const lease = await client.leases.begin({
          destroys: [{ bucket: { type: "USERNAMES", value: username }, source }],
          allow_missing: true,
        });
        await client.leases.commit(lease.uuid);
        return `The claim of the username ${username} is gone. The row is still here, so another cell can take the name now.`;
      }
      case "row":
        await orm.execute(sql`UPDATE users SET username = ${other} WHERE id = ${id}`);
        return `Row ${id} says ${other} now. The coordinator still keeps ${username} for it.`;
      case "insert":
        await orm.execute(sql`INSERT INTO users (username) VALUES (${other})`);
        return `${other} has a row, and no claim: any cell can take the name.`;
    }
  });
}
