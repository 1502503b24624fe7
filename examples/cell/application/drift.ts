/** Ways to make rows and claims disagree. No application should do this, but bugs and manual changes do. */
import { sql } from "drizzle-orm";
import { runAction } from "../protocol/action.ts";
import type { Account } from "./accounts.ts";
import type { OpenCell } from "./open-cell.ts";

export const drifts = {
  claim: "Destroy the claim on the handle, and keep the row",
  row: "Change the handle with plain SQL, and keep the claim",
  insert: "Insert another person with plain SQL, without a claim",
  twin: "Insert a person with a look-alike of the handle with plain SQL, past the unique index",
} as const;

export type Drift = keyof typeof drifts;

export const isDrift = (given: string): given is Drift => Object.hasOwn(drifts, given);

/** Resolves to a sentence that says what was done. */
export function plantDrift(
  { client, orm }: Pick<OpenCell, "client" | "orm">,
  drift: Drift,
  { id, handle }: Account,
): Promise<string> {
  return runAction({ what: "Drift" }, async () => {
    const other = `${handle}-${Date.now().toString(36)}`;
    switch (drift) {
      case "claim": {
        const source = { type: "PEOPLE", id: String(id) } as const;
        const lease = await client.leases.begin({
          destroys: [{ bucket: { type: "HANDLES", value: handle }, source }],
          allow_missing: true,
        });
        await client.leases.commit(lease.uuid);
        return (
          `The claim on the handle ${handle} is gone, but the row still exists. ` +
          "Another cell can take the name now."
        );
      }
      case "row":
        await orm.execute(sql`UPDATE people SET handle = ${other} WHERE id = ${id}`);
        return `Row ${id} has the handle ${other} now, but its claim is still on ${handle}.`;
      case "insert":
        await orm.execute(sql`INSERT INTO people (handle) VALUES (${other})`);
        return `${other} has a row, but no claim. Any cell can take the name.`;
      case "twin": {
        const twin = fullWidth(handle);
        if (twin === handle) return `${handle} has no full-width look-alike. Choose another account.`;
        await orm.execute(sql`INSERT INTO people (handle) VALUES (${twin}) ON CONFLICT DO NOTHING`);
        return `${twin} has a row, but is the same name as ${handle}. Only one row can have the claim.`;
      }
    }
  });
}

/** Full-width characters are the same name as ASCII, but not for the database's index. */
const fullWidth = (handle: string): string =>
  handle.replaceAll(/[!-~]/g, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0));
