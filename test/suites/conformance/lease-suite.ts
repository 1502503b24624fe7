/** Tests of begin, commit and rollback. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import type * as z from "zod";
import type * as schemas from "../../../src/coordinator/api/contract/schemas.ts";
import type { Client } from "./client.ts";
import { applied, begun, claim, committed, freshName } from "./leases.ts";
import type { Open } from "./coordinator.ts";

type LeaseAnswer = z.infer<typeof schemas.leaseAnswer>;
type RecordAnswer = z.infer<typeof schemas.recordAnswer>;

export function leaseSuite(open: Open): void {
  let api: Client;

  beforeAll(async () => {
    api = await open();
  });

  const leasePath = (uuid: string, cell = "1"): string => `/v1/cells/${cell}/leases/${uuid}`;

  const begin = (status: number, uuid: string, body: unknown, cell = "1"): Promise<LeaseAnswer> =>
    api.json(status, "PUT", leasePath(uuid, cell), { key: `cell ${cell}`, body });

  const refuse = (status: number, uuid: string, body: unknown, cell = "1") =>
    api.problem(status, "PUT", leasePath(uuid, cell), { key: `cell ${cell}`, body });

  const decide = (
    status: number,
    uuid: string,
    decision: "commit" | "rollback",
    cell = "1",
  ): Promise<LeaseAnswer> =>
    api.json(status, "POST", `${leasePath(uuid, cell)}/${decision}`, { key: `cell ${cell}` });

  const lookUp = (value: string, key: "router" | "cell 1" | "cell 2" = "router") =>
    api.send("GET", `/v1/records/ROUTES/${encodeURIComponent(value)}`, { key });

  describe("a batch", () => {
    test("is returned with its ops while it is granted, and with counts once it is decided", async () => {
      const [gone, kept, made, uuid] = [freshName(), freshName(), freshName(), newUuid()];
      await committed(api, gone);
      await committed(api, kept);
      const body = {
        creates: [
          {
            bucket: { type: "EMAILS", value: `${made}@Example.com` },
            subject: { type: "USER", id: 9_007_199_254_740_991 },
            source: { type: "RAILS_TABLE_EMAILS", id: -1 },
          },
        ],
        destroys: [
          { bucket: { type: "ROUTES", value: gone } },
          { bucket: { type: "ROUTES", value: freshName() }, source: { type: "RAILS_TABLE_ROUTES", id: "x" } },
        ],
        replaces: [claim(kept.toUpperCase(), "43")],
        allow_missing: true,
      };
      const { lease } = await begin(201, uuid, body);
      expect(lease).toMatchObject({
        uuid,
        cell_id: "1",
        state: "GRANTED",
        counts: { creates: 1, destroys: 2, replaces: 1, missing: 1 },
      });
      expect(lease.creates).toEqual([
        {
          ...body.creates[0],
          subject: { type: "USER", id: "9007199254740991" },
          source: { type: "RAILS_TABLE_EMAILS", id: "-1" },
        },
      ]);
      expect(lease.destroys).toEqual(body.destroys);
      expect(lease.replaces).toMatchObject([{ bucket: { value: kept.toUpperCase() }, source: { id: "43" } }]);
      expect(new Date(lease.created_at).toISOString()).toBe(lease.created_at);

      const done = (await decide(200, uuid, "commit")).lease;
      expect(done).toMatchObject({ state: "COMMITTED", decided_by: "cell", counts: lease.counts });
      expect(done.decided_at).toBeDefined();
      expect(done).not.toHaveProperty("creates");
      expect(done).not.toHaveProperty("reason");
      expect((await lookUp(gone)).status).toBe(404);
      const record = ((await lookUp(kept)).json as RecordAnswer).record;
      expect(record).toMatchObject({
        bucket: { type: "ROUTES", value: kept.toUpperCase() },
        source: { id: "43" },
        status: "ACTIVE",
      });
    });

    test("gets a UUIDv7 if it has no id, and the answer has its path", async () => {
      const { headers, json } = await api.send("POST", "/v1/cells/1/leases", {
        key: "cell 1",
        body: { creates: [claim(freshName())] },
      });
      const { lease } = json as LeaseAnswer;
      expect(lease.uuid).toMatch(/^[\da-f]{8}-[\da-f]{4}-7/);
      expect(headers.get("location")).toBe(leasePath(lease.uuid));
      await decide(200, lease.uuid, "rollback");
    });

    test("[B1] may have 1,000 ops, and not one more", async () => {
      const ops = Array.from({ length: 1_001 }, (_, index) => claim(`many-${index}`));
      const refused = await refuse(400, newUuid(), { creates: ops.slice(0, 600), replaces: ops.slice(600) });
      expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", field: "replaces[400]" });
      const uuid = newUuid();
      const { lease } = await begin(201, uuid, { creates: ops.slice(0, 1_000) });
      expect(lease.creates).toHaveLength(1_000);
      await decide(200, uuid, "rollback");
    });
  });

  describe("a begin with wait_ms", () => {
    test("[B11] waits for a leased name, and is granted when the name is free", async () => {
      const { uuid, value } = await begun(api);
      const waiting = newUuid();
      const body = { creates: [claim(value)], wait_ms: 20_000 };
      const granted = begin(201, waiting, body, "2");
      const created = api.send("POST", "/v1/cells/1/leases", { key: "cell 1", body });
      await decide(200, uuid, "rollback");
      // Which one comes first is open, so each gives the name up.
      await Promise.all([
        granted.then(() => decide(200, waiting, "rollback", "2")),
        created.then(({ status, json }) => {
          expect(status).toBe(201);
          return decide(200, (json as LeaseAnswer).lease.uuid, "rollback");
        }),
      ]);
    });

    test("[B11] is refused with `taken` when the name it waits for is committed", async () => {
      const { uuid, value } = await begun(api);
      const refused = refuse(409, newUuid(), { creates: [claim(value)], wait_ms: 20_000 }, "2");
      await decide(200, uuid, "commit");
      expect(await refused).toMatchObject({ code: "ALREADY_EXISTS", conflicts: [{ kind: "taken" }] });
    });

    test("[B11] [C7] ends as refused when it is rolled back", async () => {
      const { uuid, value } = await begun(api);
      const waiting = newUuid();
      const refused = refuse(409, waiting, { creates: [claim(value)], wait_ms: 20_000 }, "2");
      await decide(200, waiting, "rollback", "2");
      expect(await refused).toMatchObject({ reason: "LEASE_ROLLED_BACK" });
      await decide(200, uuid, "rollback");
    });

    test("[B11] with 0 is refused at once", async () => {
      const { uuid, value } = await begun(api);
      const refused = await refuse(409, newUuid(), { creates: [claim(value)], wait_ms: 0 }, "2");
      expect(refused).toMatchObject({ code: "ABORTED", retryable: true, conflicts: [{ kind: "leased" }] });
      await decide(200, uuid, "rollback");
    });

    test("[B2] is the same begin with another wait", async () => {
      const { uuid, value } = await begun(api);
      const again = await begin(200, uuid, { creates: [claim(value)], wait_ms: 10 });
      expect(again.lease.state).toBe("GRANTED");
      await decide(200, uuid, "rollback");
    });
  });

  describe("scopes", () => {
    test("[R2] [R4] are shown, and only a replace changes them", async () => {
      const [name, uuid] = [freshName(), newUuid()];
      const scoped = { ...claim(name), scope: 9_970 };
      const { lease } = await begin(201, uuid, { creates: [scoped] });
      expect(lease.creates?.[0]).toMatchObject({ scope: "9970" });
      const shown = async (): Promise<unknown> =>
        ((await lookUp(name, "cell 1")).json as { record: object }).record;
      expect(await shown()).toMatchObject({ status: "LEASE_CREATING", scope: "9970" });
      // The scope is part of the batch, so the batch with another one is another batch.
      const other = { creates: [{ ...scoped, scope: "9971" }] };
      expect(await refuse(409, uuid, other)).toMatchObject({ reason: "LEASE_ID_REUSED" });
      expect((await begin(200, uuid, { creates: [scoped] })).lease.state).toBe("GRANTED");
      await decide(200, uuid, "commit");
      expect(await shown()).toMatchObject({ status: "ACTIVE", scope: "9970" });
      const source_type = "RAILS_TABLE_ROUTES";
      const body = { source_type, ranges: [{}] };
      const digestOf = async (): Promise<unknown> =>
        (
          await api.json<{ digests: { hash: string }[] }>(200, "POST", "/v1/cells/1/records/digests", {
            key: "cell 1",
            body,
          })
        ).digests[0]?.hash;
      await applied(api, name);
      const before = await digestOf();
      for (const scope of ["9971", undefined]) {
        const replaced = newUuid();
        const replace = { ...claim(name), ...(scope === undefined ? {} : { scope }) };
        await begin(201, replaced, { replaces: [replace] });
        await decide(200, replaced, "commit");
        await applied(api, name);
        const record = (await shown()) as { scope?: string };
        expect(record.scope).toBe(scope);
        expect(await digestOf()).not.toBe(before);
      }
      for (const scope of ["", "x".repeat(129), "a\n"])
        expect(await refuse(400, newUuid(), { creates: [{ ...claim(freshName()), scope }] })).toMatchObject({
          field: "creates[0].scope",
        });
      const destroys = [{ bucket: { type: "ROUTES", value: name }, scope: "1" }];
      expect(await refuse(400, newUuid(), { destroys })).toMatchObject({ field: "destroys[0].scope" });
    });
  });

  describe("visibility", () => {
    test("operators get NOT_FOUND for an unregistered cell, and no begin is made", async () => {
      const body = { creates: [claim(freshName())] };
      for (const [method, path] of [
        ["PUT", leasePath(newUuid(), "404")],
        ["POST", "/v1/cells/404/leases"],
      ] as const) {
        expect(await api.problem(404, method, path, { body })).toMatchObject({
          code: "NOT_FOUND",
          reason: "CELL_UNKNOWN",
        });
      }
      expect(await api.problem(404, "GET", "/v1/cells/404/leases", {})).toMatchObject({
        reason: "CELL_UNKNOWN",
      });
      expect(
        await api.problem(404, "GET", "/v1/cells/404/records?source_type=RAILS_TABLE_ROUTES", {}),
      ).toMatchObject({ reason: "CELL_UNKNOWN" });
    });
  });

  describe("freezing a cell", () => {
    test("[C6] a frozen cell cannot begin, but can commit and roll back", async () => {
      const { uuid, value } = await begun(api);
      await api.json(200, "POST", "/v1/admin/cells/1/freeze", {});
      expect(await refuse(409, newUuid(), { creates: [claim(freshName())] })).toMatchObject({
        code: "FAILED_PRECONDITION",
        reason: "CELL_FROZEN",
      });
      await begin(200, uuid, { creates: [claim(value)] });
      await decide(200, uuid, "commit");
      await api.json(200, "POST", "/v1/admin/cells/1/unfreeze", {});
      await begun(api);
    });

    test("[X1] a draining cell begins leases only for its verification", async () => {
      const { uuid, value } = await begun(api);
      await api.json(200, "POST", "/v1/admin/cells/1/drain", {});
      const creates = [claim(freshName())];
      expect(await refuse(409, newUuid(), { creates })).toMatchObject({
        code: "FAILED_PRECONDITION",
        reason: "CELL_DRAINING",
      });
      await begin(200, uuid, { creates: [claim(value)] });
      await decide(200, uuid, "commit");
      const verified = newUuid();
      await begin(201, verified, { creates, verification: true });
      await decide(200, verified, "commit");
      await api.json(200, "POST", "/v1/admin/cells/1/unfreeze", {});
      await begun(api);
    });
  });
}
