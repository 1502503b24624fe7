/** Tests of transfers of a scope from one cell to another. */
import { v4 as newUuid } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as z from "zod";
import type { transferRoutes } from "../../../src/coordinator/capabilities/transfer/edge/routes.ts";
import type { KeyName, Problem } from "./client.ts";
import type { Coordinator, Open } from "./coordinator.ts";
import { claim, freshName } from "./leases.ts";

type Answers = typeof transferRoutes;
type Transfer = z.infer<Answers["getTransfer"]["responses"][200]["schema"]>["transfer"];
type Plan = z.infer<Answers["planTransfer"]["responses"][200]["schema"]>["plan"];
type List = z.infer<Answers["listTransfers"]["responses"][200]["schema"]>;

const MOST_READS = 600;
const READ_EVERY_MS = 100;

export function transferSuite(open: Open): void {
  let api: Coordinator;

  beforeAll(async () => {
    api = await open({ cells: ["1", "2", "3", "4"] });
  });

  async function eventually(isTrue: () => Promise<boolean>): Promise<void> {
    for (let reads = 0; !(await isTrue()); reads += 1) {
      expect(reads, "a transfer does not end").toBeLessThan(MOST_READS);
      await new Promise((resolve) => void setTimeout(resolve, READ_EVERY_MS));
      await api.ringAlarms();
    }
  }

  /** Shards learn of decisions after the caller. */
  async function applied(): Promise<void> {
    interface Listed {
      cells: { unapplied_decisions: number | null }[];
    }
    await eventually(async () => {
      const { cells } = await api.json<Listed>(200, "GET", "/v1/admin/cells", {});
      return cells.every(({ unapplied_decisions: unapplied }) => unapplied === 0);
    });
  }

  /** No ledger may still tell shards a decision when the next suite begins with empty objects. */
  afterAll(applied);

  /** Gives a cell so many claims of a scope, a new one by default. */
  async function owned(
    cell: string,
    count: number,
    scope = freshName(),
  ): Promise<{ scope: string; values: string[] }> {
    const values = Array.from({ length: count }, freshName);
    const [lease, key] = [`/v1/cells/${cell}/leases/${newUuid()}`, `cell ${cell}`] as const;
    const creates = values.map((value, index) => ({ ...claim(value, index + 1), scope }));
    await api.json(201, "PUT", lease, { key, body: { creates } });
    await api.json(200, "POST", `${lease}/commit`, { key });
    await applied();
    return { scope, values };
  }

  const call = async (key: KeyName, path: string, body?: object): Promise<Transfer> =>
    (await api.json<{ transfer: Transfer }>(200, "POST", `/v1/transfers${path}`, { key, body })).transfer;

  const prepare = (scope: string, more: object = {}, key: KeyName = "cell 1"): Promise<Transfer> =>
    call(key, "", { uuid: newUuid(), to: "2", scope, ...more });

  const refused = (
    status: number,
    key: KeyName,
    path: string,
    body?: object,
  ): Promise<Problem & { headers: Headers }> =>
    api.problem(status, "POST", `/v1/transfers${path}`, { key, body });

  const read = async ({ id }: Transfer, key: KeyName = "operator"): Promise<Transfer> =>
    (await api.json<{ transfer: Transfer }>(200, "GET", `/v1/transfers/${id}`, { key })).transfer;

  const list = (key: KeyName, query = ""): Promise<List> =>
    api.json<List>(200, "GET", `/v1/transfers${query}`, { key });

  async function verified(transfer: Transfer): Promise<void> {
    const { id, from, to } = transfer;
    await call(`cell ${to}`, `/${id}/accept`);
    // Only an operator gets what both cells must report.
    const { expected } = await read(transfer);
    await call(`cell ${from}`, `/${id}/report`, { ...expected.from });
    await call(`cell ${to}`, `/${id}/report`, { ...expected.to });
  }

  async function finished(transfer: Transfer): Promise<Transfer> {
    await eventually(async () => (await read(transfer)).state === "FINISHED");
    return read(transfer);
  }

  async function moved(scope: string): Promise<Transfer> {
    const transfer = await prepare(scope);
    await verified(transfer);
    await call("cell 1", `/${transfer.id}/cut`);
    return finished(transfer);
  }

  async function ownersOf(values: readonly string[]): Promise<(string | undefined)[]> {
    const owners: (string | undefined)[] = [];
    for (const value of values) {
      const path = `/v1/records/ROUTES/${value}`;
      const { record } = await api.json<{ record: { cell_id: string } }>(200, "GET", path, {
        key: "operator",
      });
      owners.push(record.cell_id);
    }
    return owners;
  }

  test("[Y2] refuses a scope in which the source has nothing", async () => {
    const { scope } = await owned("2", 1);
    const body = { uuid: newUuid(), to: "2", scope };
    expect(await refused(409, "cell 1", "", body)).toMatchObject({ reason: "SCOPE_EMPTY" });
    const planned = await api.json<{ plan: Plan }>(200, "POST", "/v1/transfer-plan", {
      key: "cell 1",
      body: { to: "2", scope },
    });
    expect(planned.plan).toMatchObject({
      claims_total: 0,
      present_claims: null,
      obstacles: ["cell 1 has no claims of the scope"],
    });
  });

  test("[Y1] [Y6] [Y7] moves the names of a scope when both cells agree", async () => {
    const { scope, values } = await owned("1", 12);
    const transfer = await prepare(scope);
    expect(transfer).toMatchObject({
      id: `2-${transfer.uuid}`,
      from: "1",
      to: "2",
      scope,
      state: "PREPARED",
      prepared: { by: "from", reason: null },
      accepted: null,
      decided: null,
      expected: { from: { count: 12 }, to: null },
      reports: { from: null, to: null },
    });
    expect(transfer.missing).toHaveLength(3);
    const unready = await refused(409, "cell 1", `/${transfer.id}/cut`);
    expect(unready.reason).toBe("TRANSFER_NOT_READY");
    for (const each of transfer.missing) expect(unready.detail).toContain(each);
    await verified(transfer);
    expect(await read(transfer, "cell 2")).toMatchObject({
      missing: [],
      accepted: { by: "to" },
      reports: { from: { is_equal: true, by: "from" }, to: { is_equal: true, by: "to" } },
    });
    expect(await ownersOf(values)).toEqual(values.map(() => "1"));
    expect(await call("cell 1", `/${transfer.id}/cut`)).toMatchObject({ decided: { by: "from" } });
    expect(await ownersOf(values)).toEqual(values.map(() => "2"));
    expect(await finished(transfer)).toMatchObject({ unfinished_shards: 0, missing: [] });
    expect(await refused(409, "cell 2", `/${transfer.id}/abort`)).toMatchObject({ reason: "TRANSFER_CUT" });
    await call("cell 1", `/${transfer.id}/cut`);
  });

  test("[Y1] a prepare may be repeated, and its UUID is for one transfer", async () => {
    const { scope } = await owned("1", 1);
    const body = { uuid: newUuid(), to: "2", scope };
    const first = await call("cell 1", "", body);
    expect(await call("cell 1", "", body)).toMatchObject({
      id: first.id,
      prepared: { at: first.prepared.at },
    });
    const other = await refused(409, "cell 1", "", { ...body, scope: freshName() });
    expect(other.reason).toBe("LEASE_ID_REUSED");
    await call("cell 2", `/${first.id}/abort`);
    expect(await refused(409, "cell 1", "", body)).toMatchObject({ reason: "LEASE_ROLLED_BACK" });
    expect(await refused(409, "cell 1", `/${first.id}/cut`)).toMatchObject({ reason: "TRANSFER_ABORTED" });
  });

  test("[Y2] a plan changes nothing, and says what is in the way", async () => {
    const { scope, values } = await owned("1", 5);
    const plan = async (key: KeyName, body: object): Promise<Plan> =>
      (await api.json<{ plan: Plan }>(200, "POST", "/v1/transfer-plan", { key, body })).plan;
    const expected = {
      from: "1",
      to: "2",
      scope,
      claims: [{ source_type: "RAILS_TABLE_ROUTES", bucket_type: "ROUTES", count: 5 }],
      claims_total: 5,
      present_claims: 0,
      leases: [],
      obstacles: [],
      cursor: null,
    };
    expect(await plan("cell 1", { to: "2", scope })).toEqual({ ...expected, present_claims: null });
    expect(await plan("operator", { from: "1", to: "2", scope })).toEqual(expected);
    const lease = `/v1/cells/1/leases/${newUuid()}`;
    const destroys = [{ bucket: { type: "ROUTES", value: values[0] } }];
    await api.json(201, "PUT", lease, { key: "cell 1", body: { destroys } });
    expect(await plan("cell 1", { to: "2", scope })).toMatchObject({
      leases: [{ cell_id: "1", uuid: lease.split("/").at(-1) }],
      obstacles: ["leases of the source hold names of the scope"],
    });
    const blocked = await refused(409, "cell 1", "", { uuid: newUuid(), to: "2", scope });
    expect(blocked).toMatchObject({ code: "ABORTED", reason: "TRANSFER_BLOCKED" });
    expect(blocked.detail).toContain(lease.split("/").at(-1));
    await api.json(200, "POST", `${lease}/rollback`, { key: "cell 1" });
    await applied();
    const { id } = await prepare(scope);
    const move = { from: "1", to: "3", scope };
    expect(await plan("operator", move)).toMatchObject({
      obstacles: [`the transfer ${id} holds the scope`],
    });
    expect(await plan("cell 1", move)).toMatchObject({ obstacles: ["a transfer holds the scope"] });
    await call("cell 1", `/${id}/abort`);
    await applied();
  });

  test("[Y7] a plan and a refusal show a cell no transfers of other cells", async () => {
    const { scope } = await owned("1", 1);
    await owned("2", 1, scope);
    const { uuid } = await prepare(scope, { to: "3" });
    const planned = (key: KeyName): Promise<{ plan: Plan }> =>
      api.json(200, "POST", "/v1/transfer-plan", { key, body: { from: "2", to: "1", scope } });
    const { plan } = await planned("operator");
    expect(plan.obstacles).toEqual([`the transfer 3-${uuid} holds the scope`]);
    const { plan: shown } = await planned("cell 2");
    expect(shown.obstacles).toEqual(["a transfer holds the scope"]);
    const problem = await refused(409, "cell 2", "", { uuid: newUuid(), to: "1", scope });
    expect(problem.reason).toBe("TRANSFER_BLOCKED");
    expect(JSON.stringify([shown, problem])).not.toContain(uuid);
    await call("cell 1", `/3-${uuid}/abort`);
  });

  test("[Y3] [Y6] an abort leaves everything as it was", async () => {
    const { scope, values } = await owned("1", 3);
    const transfer = await prepare(scope);
    const creates = [{ ...claim(freshName()), scope }];
    const lease = `/v1/cells/1/leases/${newUuid()}`;
    await api.problem(409, "PUT", lease, { key: "cell 1", body: { creates } });
    const path = `/v1/records/ROUTES/${values[0]}`;
    const held = { lease_uuid: transfer.uuid, transfer_id: transfer.id };
    expect(await api.json(200, "GET", path, {})).toMatchObject({ record: held });
    expect(await call("cell 2", `/${transfer.id}/abort`)).toMatchObject({
      state: "ABORTED",
      decided: { by: "to" },
    });
    await applied();
    await api.json(201, "PUT", lease, { key: "cell 1", body: { creates } });
    await api.json(200, "POST", `${lease}/rollback`, { key: "cell 1" });
    expect(await ownersOf(values)).toEqual(["1", "1", "1"]);
    const { record } = await api.json<{ record: object }>(200, "GET", path, {});
    expect(record).toMatchObject({ lease_uuid: null });
    expect(record).not.toHaveProperty("transfer_id");
  });

  test("[Y7] each step is for those who may do it, and others don't learn of the transfer", async () => {
    const { scope } = await owned("1", 1);
    const body = { uuid: newUuid(), to: "2", scope };
    await refused(403, "cell 3", "", { ...body, from: "1" });
    const transfer = await prepare(scope);
    const { id, expected } = transfer;
    for (const [key, step] of [
      ["cell 1", "accept"],
      ["cell 2", "cut"],
    ] as const)
      await refused(403, key, `/${id}/${step}`);
    await refused(403, "cell 1", `/${id}/report`, { side: "to", ...expected.from });
    const unknown = `2-${newUuid()}`;
    const answers: unknown[] = [];
    for (const each of [id, unknown]) {
      const problem = await api.problem(404, "GET", `/v1/transfers/${each}`, { key: "cell 3" });
      answers.push(problem.detail.replace(each, "ID"));
      for (const step of ["accept", "cut", "abort"]) await refused(404, "cell 3", `/${each}/${step}`);
    }
    expect(answers[0]).toBe(answers[1]);
    await refused(404, "operator", `/77-${newUuid()}/accept`, { reason: "a test" });
    await refused(404, "operator", "", { ...body, to: "77", from: "1", reason: "a test" });
    await call("cell 1", `/${id}/abort`);
  });

  test("[Y7] neither cell learns of the other's leases, claims, rows and keys", async () => {
    const { scope } = await owned("1", 1);
    await owned("2", 2, scope);
    const transfer = await prepare(scope);
    const hash = "0".repeat(32);
    await call("cell 2", `/${transfer.id}/accept`);
    for (const key of ["cell 1", "cell 2"] as const)
      await call(key, `/${transfer.id}/report`, { count: 7, hash });
    const all = await read(transfer);
    expect(all).toMatchObject({ expected: { from: { count: 1 }, to: { count: 3 } } });
    const none = { count: null, hash: null, key_id: null, is_equal: false };
    const rows = { count: 7, hash, is_equal: false };
    expect(await read(transfer, "cell 1")).toMatchObject({
      expected: { from: all.expected.from, to: null },
      reports: { from: { ...rows, key_id: all.prepared.key_id }, to: none },
      prepared: { key_id: all.prepared.key_id },
      accepted: { by: "to", key_id: null },
    });
    expect(await read(transfer, "cell 2")).toMatchObject({
      expected: { from: null, to: all.expected.to },
      reports: { from: none, to: { ...rows, key_id: all.accepted?.key_id } },
      prepared: { by: "from", key_id: null },
      accepted: { key_id: all.accepted?.key_id },
    });
    for (const key of ["cell 1", "cell 2"] as const) {
      const answer = await call(key, `/${transfer.id}/abort`);
      const listed = (await list(key)).transfers.find(({ id }) => id === transfer.id);
      for (const shown of [answer, listed])
        expect([shown?.expected.from === null, shown?.expected.to === null]).toEqual([
          key === "cell 2",
          key === "cell 1",
        ]);
    }
    await applied();
  });

  test("[Y7] [O1] operators may do every step, and the audit has them", async () => {
    const { scope } = await owned("1", 2);
    const reason = "the organization moves";
    const transfer = await prepare(scope, { from: "1", reason }, "operator");
    const { id, expected } = transfer;
    await call("operator", `/${id}/accept`, { reason });
    for (const side of ["from", "to"] as const)
      await call("operator", `/${id}/report`, { side, ...expected[side], reason });
    expect(await call("operator", `/${id}/cut`, { reason })).toMatchObject({
      decided: { by: "operator", reason },
    });
    await api.cron();
    interface Audit {
      entries: { action: string; reason: string }[];
    }
    const path = `/v1/admin/audit?target=${transfer.uuid}`;
    const { entries } = await api.json<Audit>(200, "GET", path, {});
    expect(entries.map(({ action }) => action).toSorted()).toEqual([
      "accept_transfer",
      "cut_transfer",
      "prepare_transfer",
      "report_transfer",
      "report_transfer",
    ]);
    expect(new Set(entries.map((each) => each.reason))).toEqual(new Set([reason]));
  });

  test("[Y9] a switch-back undoes a transfer, unless the names have changed", async () => {
    const { scope, values } = await owned("1", 4);
    const first = await moved(scope);
    const back = { to: "1", switch_back_of: first.id };
    const second = await prepare(scope, back, "cell 2");
    expect(second).toMatchObject({ from: "2", to: "1", switch_back_of: first.id });
    await verified(second);
    await call("cell 2", `/${second.id}/cut`);
    await finished(second);
    expect(await ownersOf(values)).toEqual(values.map(() => "1"));
    const third = await moved(scope);
    const lease = `/v1/cells/2/leases/${newUuid()}`;
    const body = { destroys: [{ bucket: { type: "ROUTES", value: values[0] } }] };
    await api.json(201, "PUT", lease, { key: "cell 2", body });
    await api.json(200, "POST", `${lease}/commit`, { key: "cell 2" });
    await applied();
    const late = { uuid: newUuid(), to: "1", scope, switch_back_of: third.id };
    expect(await refused(409, "cell 2", "", late)).toMatchObject({ reason: "SCOPE_CHANGED" });
  });

  test("lists the transfers of a cell in pages, and all of them to operators", async () => {
    const ids: string[] = [];
    for (const to of ["2", "3", "2"]) {
      const { scope } = await owned("1", 1);
      const { id } = await prepare(scope, { to });
      await call("cell 1", `/${id}/abort`);
      ids.unshift(id);
    }
    const paged = async (key: KeyName, query: string): Promise<string[]> => {
      const found: string[] = [];
      let token = "";
      for (let pages = 0; pages === 0 || token !== ""; pages += 1) {
        expect(pages).toBeLessThan(200);
        const page = await list(key, `?page_size=1${query}&page_token=${token}`);
        expect(page.transfers.length).toBeLessThanOrEqual(1);
        found.push(...page.transfers.map(({ id }) => id));
        token = page.next_page_token;
      }
      return found;
    };
    const all = await paged("operator", "");
    expect(new Set(all).size).toBe(all.length);
    expect(all).toEqual((await list("operator", "?page_size=1000")).transfers.map(({ id }) => id));
    expect(all).toEqual(expect.arrayContaining(ids));
    expect(await paged("cell 1", "")).toEqual(all);
    expect(await paged("cell 3", "")).toEqual(all.filter((id) => id.startsWith("3-")));
    expect(await paged("cell 2", "&to=3")).toEqual([]);
    expect(await paged("operator", "&to=3")).toEqual(all.filter((id) => id.startsWith("3-")));
    expect(await paged("operator", "&from=3")).toEqual([]);
    expect(await paged("cell 1", "&from=1&to=2")).toEqual(all.filter((id) => id.startsWith("2-")));
    await api.problem(404, "GET", "/v1/transfers?to=77", { key: "operator" });
  });
}
