/** Tests that the rig's checks report each kind of damage, done by hand. */
import { eq, sql } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestCoordinator } from "../../../src/users/testing/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { findDisagreements, reconcileUntilDone } from "./agreement.ts";
import { openCell, type OpenCell } from "./open-cell.ts";
import type { Line, ReportedOutcome } from "./record.ts";
import { createTables, journal, users } from "./tables.ts";
import { findBrokenPromises, findDoubleNames, findLostChanges, readJournals } from "./outcome-checks.ts";

describe.skipIf(isSkipped("PostgreSQL"))("the rig's checks", () => {
  const cells: OpenCell[] = [];
  const stops: (() => Promise<unknown>)[] = [];
  const cellAt = (index: number): OpenCell => {
    const cell = cells[index];
    if (cell === undefined) throw new Error(`there is no cell ${index}`);
    return cell;
  };

  beforeAll(async () => {
    const coordinator = await startTestCoordinator();
    stops.push(() => coordinator.close());
    const server = await startPostgres();
    stops.push(() => server.stop());
    for (const cell of ["1", "2"]) {
      const config = {
        url: coordinator.url,
        cell,
        key: coordinator.keys.cell(cell),
        databaseUrl: server.url(await server.createDatabase()),
      };
      const open = openCell(config, { client: { fetch: (to, init) => coordinator.fetch(to, init) } });
      stops.push(() => open.close());
      await createTables(open.orm);
      await open.cell.install();
      cells.push(open);
    }
  });

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  /** Signs a user up without damage. */
  async function signUp({ cell }: OpenCell, username: string): Promise<{ id: string; op: string }> {
    const [id, op] = [uuidv7(), uuidv7()];
    await cell.transaction(async (tx) => {
      await tx.insert(users, { id, username });
      await tx.db.insert(journal).values({ op, kind: "sign_up", userId: id, username });
    });
    return { id, op };
  }

  test("a row without its claim, a claim without its row, and a claim of another row", async () => {
    const one = cellAt(0);
    const { id } = await signUp(one, "ada");
    expect(await findDisagreements(one)).toEqual([]);
    await one.orm.update(users).set({ username: "grace" }).where(eq(users.id, id));
    expect(await findDisagreements(one)).toEqual([
      `a row without its claim: USERNAMES grace of USER ${id} from RAILS_TABLE_USERS ${id} ACTIVE`,
      `a claim without its row: USERNAMES ada of USER ${id} from RAILS_TABLE_USERS ${id} ACTIVE`,
    ]);
    await one.orm.update(users).set({ username: "ada" }).where(eq(users.id, id));
  });

  test("leftovers on either side", async () => {
    const one = cellAt(0);
    const uuid = uuidv7();
    await one.client.leases.begin(
      {
        creates: [
          {
            bucket: { type: "USERNAMES", value: "held" },
            subject: { type: "USER", id: "1" },
            source: { type: "RAILS_TABLE_USERS", id: "1" },
          },
        ],
      },
      { uuid },
    );
    await one.orm.execute(
      sql`INSERT INTO leasehold_outstanding_leases (uuid, sources) VALUES (${uuid}, '[]')`,
    );
    const claim = "a claim without its row: USERNAMES held of USER 1 from RAILS_TABLE_USERS 1";
    const leftovers = [
      `lease ${uuid} is still outstanding in the database`,
      `lease ${uuid} is still granted`,
    ];
    expect(await findDisagreements(one)).toEqual([...leftovers, `${claim} LEASE_CREATING`]);
    // The lease is committed, because its row exists. Now the claim is permanent, and no row stands for it.
    expect(await reconcileUntilDone(one)).toEqual([]);
    expect(await findDisagreements(one)).toEqual([`${claim} ACTIVE`]);
  });

  test("a lease that was rolled back although its rows are saved", async () => {
    const two = cellAt(1);
    const uuid = uuidv7();
    await two.client.leases.rollback(uuid);
    await two.orm.execute(
      sql`INSERT INTO leasehold_outstanding_leases (uuid, sources)
        VALUES (${uuid}, '[{"type":"RAILS_TABLE_USERS","id":"7"}]')`,
    );
    expect(await reconcileUntilDone(two)).toEqual([expect.stringContaining(`"${uuid}"`)]);
    expect(await findDisagreements(two)).toEqual(["RAILS_TABLE_USERS 7 is queued for verification"]);
  });

  test("a saved change that is lost, and a row that no change created", async () => {
    const one = cellAt(0);
    const { id } = await signUp(one, "edsger");
    expect(await findLostChanges(one)).toEqual([]);
    await one.orm.update(users).set({ id: "another" }).where(eq(users.id, id));
    expect(await findLostChanges(one)).toEqual([
      `user ${id} must be edsger, but is undefined`,
      "user another exists, but no change created it",
    ]);
    await one.orm.update(users).set({ id }).where(eq(users.id, "another"));
  });

  test("a name in both cells, in another spelling", async () => {
    expect(await findDoubleNames(cells)).toEqual([]);
    await cellAt(1).orm.insert(users).values({ id: "double", username: "ADA" });
    expect(await findDoubleNames(cells)).toEqual(["ada has two owners"]);
    await cellAt(1).orm.delete(users).where(eq(users.id, "double"));
  });

  test("a reported outcome that differs from what was saved", async () => {
    const { op } = await signUp(cellAt(0), "barbara");
    const entries = await readJournals(cells);
    const reported = (of: string, what: ReportedOutcome): Line => ({
      line: "reported",
      op: of,
      outcome: what,
      code: "CODE",
    });
    expect(
      findBrokenPromises(
        [
          reported(op, "saved"),
          reported("none", "failed"),
          reported(op, "unknown"),
          reported("none", "unknown"),
        ],
        entries,
      ),
    ).toEqual([]);
    expect(findBrokenPromises([reported(op, "failed")], entries)).toEqual([
      `${op} was reported as failed (CODE), but it is saved`,
    ]);
    expect(findBrokenPromises([reported("none", "saved")], entries)).toEqual([
      "none was reported as saved, but it is not",
    ]);
  });
});
