/** Tests of the header with which a cell tells its ledger how far the ledger had got. */
import { v4 as newUuid } from "uuid";
import { beforeAll, expect, test } from "vitest";
import type { Client, KeyName, Received } from "./client.ts";
import type { Open } from "./coordinator.ts";
import { applied, claim, freshName } from "./leases.ts";

const HEADER = "leasehold-history";

/** In the end, the ledger of the first one refuses everything. */
const CELLS = ["71", "72"] as const;

export function historySuite(open: Open): void {
  let api: Client;

  beforeAll(async () => {
    api = await open({ cells: [...CELLS] });
  });

  const begin = (cell: string, key: KeyName, headers: Record<string, string> = {}): Promise<Received> =>
    api.send("PUT", `/v1/cells/${cell}/leases/${newUuid()}`, {
      key,
      headers,
      body: { creates: [claim(freshName())] },
    });

  const pointOf = ({ headers }: Received): { incarnation: number; position: number } => {
    const [incarnation = NaN, position = NaN] = (headers.get(HEADER) ?? "").split(".").map(Number);
    return { incarnation, position };
  };

  test("[L7] every successful answer about leases has the ledger's newest point", async () => {
    const key = "cell 72";
    const made = await api.send("POST", "/v1/cells/72/leases", {
      key,
      body: { creates: [claim(freshName())] },
    });
    const path = String(made.headers.get("location"));
    const answers = [
      made,
      await begin("72", key),
      await api.send("POST", `${path}/commit`, { key }),
      await api.send("POST", `/v1/cells/72/leases/${newUuid()}/rollback`, { key }),
      await api.send("GET", path, { key }),
      await api.send("GET", "/v1/cells/72/leases", { key }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 200, 200, 200, 200]);
    const points = answers.map(pointOf);
    expect(new Set(points.map(({ incarnation }) => incarnation)).size).toBe(1);
    const positions = points.map(({ position }) => position);
    expect(positions.toSorted((a, b) => a - b)).toEqual(positions);
    // Each of the four changes has its own position, and the reads add none.
    expect(new Set(positions).size).toBe(4);
    const newest = String(answers.at(-1)?.headers.get(HEADER));
    expect((await begin("72", key, { [HEADER]: newest })).status).toBe(201);
  });

  test("a refusal has no point, because it may come before the comparison", async () => {
    const path = `/v1/cells/72/leases/${newUuid()}`;
    expect((await api.send("GET", path, { key: "cell 72" })).headers.get(HEADER)).toBeNull();
  });

  test.each(["1", "0.1", "1.x", "1.2.3", "1e3.4", "9007199254740993.1"])(
    "the value %s is refused, and named",
    async (value) => {
      const { status, json } = await begin("72", "cell 72", { [HEADER]: value });
      expect([status, json]).toMatchObject([400, { code: "INVALID_ARGUMENT", field: HEADER }]);
    },
  );

  test("operators neither send nor get a point", async () => {
    const path = "/v1/cells/72/leases";
    const ahead = { [HEADER]: "9007199254740991.1" };
    const { status, headers } = await api.send("GET", path, { key: "operator", headers: ahead });
    expect([status, headers.get(HEADER)]).toEqual([200, null]);
    expect((await begin("72", "cell 72")).status).toBe(201);
  });

  /** Prepares a transfer from cell 72 to cell 71. Returns its path. */
  async function prepared(): Promise<string> {
    const scope = freshName();
    const lease = `/v1/cells/72/leases/${newUuid()}`;
    const value = freshName();
    const body = { creates: [{ ...claim(value), scope }] };
    await api.send("PUT", lease, { key: "cell 72", body });
    await api.send("POST", `${lease}/commit`, { key: "cell 72" });
    await applied(api, value, "cell 72");
    const transfer = { uuid: newUuid(), from: "72", to: "71", scope, reason: "a test" };
    const { status, headers } = await api.send("POST", "/v1/transfers", { key: "cell 72", body: transfer });
    expect([status, headers.get(HEADER)]).toEqual([200, null]);
    return `/v1/transfers/71-${transfer.uuid}`;
  }

  const rows = { count: 1, hash: "0".repeat(32) };

  test("[L7] so has every answer about a transfer, but only for its destination", async () => {
    const path = await prepared();
    const key = "cell 71";
    const answers = [
      await api.send("POST", `${path}/accept`, { key }),
      await api.send("POST", `${path}/report`, { key, body: rows }),
      await api.send("GET", path, { key }),
      await api.send("GET", "/v1/transfers", { key }),
      await api.send("POST", `${path}/abort`, { key }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const newest = pointOf(await begin("71", key));
    for (const answer of answers) expect(pointOf(answer).incarnation).toBe(newest.incarnation);
    // The abort is a change of the ledger, and the calls before it are none.
    const positions = answers.map((answer) => pointOf(answer).position);
    expect(Math.max(...positions.slice(0, -1))).toBeLessThan(positions.at(-1) ?? 0);
    // What the source sends is a point of its own ledger.
    const headers = { [HEADER]: "9007199254740991.1" };
    for (const read of [path, "/v1/transfers?to=71"]) {
      const got = await api.send("GET", read, { key: "cell 72", headers });
      expect([got.status, got.headers.get(HEADER)]).toEqual([200, null]);
    }
    expect((await begin("71", key)).status).toBe(201);
  });

  test("[H4] [L7] a ledger without the cell's point refuses everything from then on", async () => {
    const { incarnation, position } = pointOf(await begin("71", "cell 71"));
    const seen = `${incarnation}.${position + 1}`;
    const lost = { code: "UNAVAILABLE", reason: "HISTORY_LOST", retryable: true };
    // If it answered, it could abort a transfer whose cut it has forgotten.
    const abort = `/v1/transfers/71-${newUuid()}/abort`;
    const aborted = await api.send("POST", abort, { key: "cell 71", headers: { [HEADER]: seen } });
    expect([aborted.status, aborted.json]).toMatchObject([503, lost]);
    const { status, json } = await begin("71", "cell 71", { [HEADER]: seen });
    expect([status, json]).toMatchObject([503, lost]);
    expect((await begin("71", "cell 71")).json).toMatchObject(lost);
    const listed = await api.send("GET", "/v1/cells/71/leases", { key: "cell 71" });
    expect([listed.json, listed.headers.get(HEADER)]).toMatchObject([lost, null]);
    expect((await begin("72", "cell 72")).status).toBe(201);
  });
}
