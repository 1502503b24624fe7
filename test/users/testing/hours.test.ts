/** A deployment with small limits, driven through hours of virtual time from outside. */
import { expect, test } from "vitest";
import { v4 as newUuid } from "uuid";
import { startTestCoordinator } from "../../../src/users/testing/index.ts";

const MINUTES = 90;
const LEASES_PER_MINUTE = 3;

interface ApiCell {
  cell_id: string;
  stored_bytes: number;
  outstanding_leases: number;
  unapplied_decisions: number;
}

test("[S1] [S2] [S3] [S4] [M6] nothing grows over hours of leases, fences, keys and restarts", async () => {
  const coordinator = await startTestCoordinator({
    cells: ["1", "2"],
    shards: 2,
    variables: {
      LEASEHOLD_OUTCOME_RETENTION_S: "600",
      LEASEHOLD_LATE_BEGIN_S: "600",
      LEASEHOLD_LEDGER_BYTES: "400000",
      LEASEHOLD_SHARD_BYTES: "400000",
      LEASEHOLD_FENCES: "40",
      LEASEHOLD_AUDIT_ENTRIES: "50",
      LEASEHOLD_OUTSTANDING_LEASES: "20",
      LEASEHOLD_MAX_KEYS: "30",
      LEASEHOLD_MAX_REVOKED_KEYS: "10",
    },
  });
  const { keys } = coordinator;
  const call = async <T>(
    status: number,
    key: string,
    method: string,
    path: string,
    body?: object,
  ): Promise<T> => {
    const answer = await coordinator.fetch(`${coordinator.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = (await answer.json()) as T;
    expect([answer.status, answer.status === status ? {} : json], `${method} ${path}`).toEqual([status, {}]);
    return json;
  };
  const lease = async (cell: string, batch: object): Promise<string> => {
    const uuid = newUuid();
    await call(201, keys.cell(cell), "PUT", `/v1/cells/${cell}/leases/${uuid}`, batch);
    return `/v1/cells/${cell}/leases/${uuid}`;
  };
  const cells = async (): Promise<ApiCell[]> =>
    (await call<{ cells: ApiCell[] }>(200, keys.operator, "GET", "/v1/admin/cells")).cells;
  const bucket = (cell: string, n: number) => ({ type: "ROUTES", value: `cell-${cell}-${n}` });

  const bytes: number[][] = [];
  for (let minute = 0; minute < MINUTES; minute += 1) {
    for (const cell of ["1", "2"]) {
      for (let n = 0; n < LEASES_PER_MINUTE; n += 1) {
        // Every name is taken in one minute and given up in the next.
        const batch =
          minute % 2 === 0
            ? {
                creates: [
                  {
                    bucket: bucket(cell, n),
                    subject: { type: "NAMESPACE", id: "1" },
                    source: { type: "RAILS_TABLE_ROUTES", id: String(n) },
                  },
                ],
              }
            : { destroys: [{ bucket: bucket(cell, n) }] };
        await call(200, keys.cell(cell), "POST", `${await lease(cell, batch)}/commit`);
      }
      const unknown = `/v1/cells/${cell}/leases/${newUuid()}`;
      await call(200, keys.cell(cell), "POST", `${unknown}/rollback`, {});
    }
    const key = await call<{ id: string }>(201, keys.operator, "POST", "/v1/admin/keys", {
      role: "router",
      expires_in_s: 600,
    });
    if (minute % 2 === 0) await call(200, keys.operator, "POST", `/v1/admin/keys/${key.id}/revoke`, {});
    await coordinator.advance(60_000);
    await coordinator.cron();
    if (minute % 17 === 0) await coordinator.restart();
    bytes.push((await cells()).map(({ stored_bytes: stored }) => stored));
  }

  await coordinator.advance(60_000);
  for (const cell of await cells())
    expect(cell).toMatchObject({ outstanding_leases: 0, unapplied_decisions: 0 });
  // After the first hour, no ledger is larger than it was during that hour.
  for (const cell of [0, 1]) {
    const sizes = bytes.map((each) => each[cell] ?? 0);
    expect(Math.max(...sizes.slice(60))).toBeLessThanOrEqual(Math.max(...sizes.slice(0, 60)));
  }
  await coordinator.close();
});
