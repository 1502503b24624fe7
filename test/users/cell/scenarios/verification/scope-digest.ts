import { describe, expect, test } from "vitest";
import { claimable } from "../../../../../src/users/cell/claimable.ts";
import { DigestSum } from "../../../../../src/common/digest.ts";
import {
  numbers,
  type VerifiedCell,
} from "../../../../../src/users/cell/conformance/verification/verified-cell.ts";

const USERS = "RAILS_TABLE_USERS";
const NOTHING = { count: 0, hash: "0".repeat(32) };

/** The digest of a scope's rows, which a transfer compares with the claims. */
export function scopeDigestSuite(current: () => VerifiedCell): void {
  describe("the digest of a scope", () => {
    test("equals the digest of the claims, over several pages", async () => {
      const one = current();
      const scoped = one.open([
        claimable(one.tables.accounts, {
          source: USERS,
          subject: { type: "USER", id: "id" },
          scope: ({ id }) => (id % 2 === 0 ? "even" : "odd"),
          attributes: { id: "USER_IDS", username: { bucket: "USERNAMES", when: ({ bot }) => !bot } },
        }),
      ]);
      const rows = numbers(1, 2_101).map((id) => ({ username: `user-${id}` }));
      await scoped.bulkInsert(one.tables.accounts, rows);
      const sum = new DigestSum();
      for (const scope of ["even", "odd"]) {
        const { count, hash } = await scoped.digestScope(scope);
        sum.addHash(hash, count);
      }
      const claims = await one.client.records.digests({ sourceType: USERS, ranges: [{}] });
      expect(claims.digests).toMatchObject([{ count: 2 * 2_101, hash: sum.hash, held: false }]);
      expect(sum.count).toBe(2 * 2_101);
      expect(await scoped.digestScope("other")).toEqual(NOTHING);
      const before = await scoped.digestScope("odd");
      await one.update("accounts", { username: "renamed" }, { id: 1_001 });
      const after = await scoped.digestScope("odd");
      expect(after.count).toBe(before.count);
      expect(after.hash === before.hash).toBe(false);
    });
  });
}
