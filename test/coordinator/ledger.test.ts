/** Tests of a ledger that need more than one capability. */
import { expect, test } from "vitest";
import { begin, isPrepare, no } from "../support/calls.ts";
import { Cluster } from "../support/cluster.ts";

test("[A1] [C6] after a freeze or revocation during a begin, nothing is granted", async () => {
  for (const change of ["freeze", "revoke"] as const) {
    const c = await Cluster.start({ shards: 1 });
    await c.clock.runUntil(begin(c, "1", c.uuid(), ["warm-up"]));
    c.fate = (call) => (isPrepare(call) ? "slow" : "deliver");
    const running = begin(c, "1", c.uuid(), ["ada"]);
    await c.clock.pass(10);
    const ledger = c.ledger("1").object;
    await c.clock.runUntil<unknown>(
      change === "freeze"
        ? ledger.setState({ ...c.envelope, state: "FROZEN", stateVersion: 0 })
        : ledger.revoke({ ...c.envelope, keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER }),
    );
    const ended = await c.clock.runUntil(running);
    expect(ended).toEqual(
      change === "freeze"
        ? no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" })
        : no("UNAUTHENTICATED", { reason: "KEY_REVOKED" }),
    );
    expect(c.holds().map(({ canonical }) => canonical)).toEqual(["warm-up"]);
  }
});
