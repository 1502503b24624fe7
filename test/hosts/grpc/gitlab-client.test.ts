/** The calls of GitLab's Rails application: in its transactions, in its recovery and in its verification. */
import { createClient, type Client as WireClient } from "@connectrpc/connect";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client as Database } from "pg";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClaimService, Record_Status } from "../../../src/coordinator/wire/protobuf.ts";
import { freshName } from "../../suites/conformance/leases.ts";
import { failure, idBytes } from "../../suites/wire/messages.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { nativeTransport } from "./native-transport.ts";
import { places, serveGrpc, type GrpcDeployment } from "./served.ts";

const ROOT = join(import.meta.dirname, "../../..");
const USERS_TABLE = 1;
const USERNAME = 4;
/** As long as a slow machine may need. GitLab waits 300 ms. */
const DEADLINE = { timeoutMs: 60_000 };

describe.each(places)("%s", (place) => {
  let deployment: GrpcDeployment;
  beforeAll(async () => {
    deployment = await serveGrpc(place);
  });
  afterAll(() => deployment.close());

  test("Ruby's gRPC gem begins, lists, commits, reads and rolls back over mTLS", async () => {
    const folder = mkdtempSync(join(tmpdir(), "descriptors-"));
    const descriptors = join(folder, "all.binpb");
    execFileSync(join(ROOT, "node_modules/.bin/buf"), ["build", "-o", descriptors], { cwd: ROOT });
    const { certFile, keyFile } = deployment.authority.issue("cell 1", { sans: ["DNS:cell-1.test"] });
    const name = freshName();
    const env = {
      ...process.env,
      DESCRIPTORS: descriptors,
      ADDRESS: `localhost:${deployment.grpc.port}`,
      CA: deployment.authority.certFile,
      CLIENT_CERT: certFile,
      CLIENT_KEY: keyFile,
      KEY: deployment.served.keys.cell("1"),
      CELL: "1",
      NAME: name,
    };
    const { stdout } = await promisify(execFile)("ruby", [join(import.meta.dirname, "gitlab-client.rb")], {
      env,
    });
    rmSync(folder, { recursive: true });
    const seen = JSON.parse(stdout) as Record<string, unknown>;
    expect(seen).toEqual({
      lease: expect.stringMatching(/^[\da-f-]{36}$/),
      taken: { code: "AlreadyExists", details: expect.stringContaining("leased"), status: true },
      listed: [seen["lease"]],
      records: [[name, "ACTIVE"]],
      truncated: false,
      rolled_back: { code: "FailedPrecondition", details: expect.any(String), status: true },
      other_cell: { code: "PermissionDenied", details: expect.any(String), status: true },
      late: { code: "DeadlineExceeded", details: expect.any(String), status: false },
      pages: [
        ["PROXY", "cell-1.test", "pages_domain"],
        ["PROXY", "cell-1.test", "pages_unique_domain"],
      ],
      no_pages: { code: "NotFound", details: expect.any(String), status: true },
      probes: ["OK", "OK"],
    });
  });
});

describe("a cell with a database", () => {
  let deployment: GrpcDeployment;
  let postgres: DatabaseServer;
  let database: Database;
  let client: WireClient<typeof ClaimService>;
  beforeAll(async () => {
    [deployment, postgres] = await Promise.all([serveGrpc("bridge"), startPostgres()]);
    database = new Database({ connectionString: postgres.url(await postgres.createDatabase()) });
    await database.connect();
    await database.query(`
      CREATE TABLE users (id bigint PRIMARY KEY, username text NOT NULL);
      CREATE TABLE cells_outstanding_leases (uuid uuid PRIMARY KEY)`);
    const key = async (): Promise<string> => deployment.served.keys.cell("1");
    client = createClient(ClaimService, nativeTransport(deployment.connect(), key));
  });
  afterAll(async () => {
    await database.end();
    await postgres.stop();
    await deployment.close();
  });

  const metadata = (id: number, username: string) => ({
    claim: { claim: { case: "username" as const, value: username } },
    subject: { type: 4, id: BigInt(id) },
    source: { type: USERS_TABLE, railsPrimaryKeyId: idBytes(id) },
  });

  /** Saves a user as Rails does: rows first, then the begin and the lease's row, all in one transaction. */
  async function save(id: number, username: string): Promise<string> {
    await database.query("BEGIN");
    await database.query("INSERT INTO users VALUES ($1, $2)", [id, username]);
    const request = { cellId: 1n, createRecords: [metadata(id, username)] };
    try {
      const { leaseUuid } = await client.beginUpdate(request, DEADLINE);
      await database.query("INSERT INTO cells_outstanding_leases (uuid) VALUES ($1)", [leaseUuid?.value]);
      return leaseUuid?.value ?? "";
    } catch (error) {
      await database.query("ROLLBACK");
      throw error;
    }
  }
  const decide = async (method: "commitUpdate" | "rollbackUpdate", uuid: string): Promise<void> => {
    await client[method]({ cellId: 1n, leaseUuid: { value: uuid } }, DEADLINE);
    await database.query("DELETE FROM cells_outstanding_leases WHERE uuid = $1", [uuid]);
  };
  const outstanding = async (): Promise<string[]> =>
    (await database.query<{ uuid: string }>("SELECT uuid FROM cells_outstanding_leases")).rows.map(
      ({ uuid }) => uuid,
    );

  /** Commits leases that have a local row, and rolls the others back. */
  async function reconcile(): Promise<{ committed: number; rolledBack: number }> {
    const counts = { committed: 0, rolledBack: 0 };
    const local = new Set(await outstanding());
    const createdAfter = timestampFromMs(Date.now() - 2 * 3_600_000);
    let next;
    do {
      const page = await client.listLeases(
        { cellId: 1n, limit: 2, createdAfter, ...(next === undefined ? {} : { next }) },
        DEADLINE,
      );
      for (const { uuid } of page.leases) {
        const isLocal = local.has(uuid?.value ?? "");
        await decide(isLocal ? "commitUpdate" : "rollbackUpdate", uuid?.value ?? "");
        counts[isLocal ? "committed" : "rolledBack"] += 1;
      }
      next = page.next;
    } while (next !== undefined);
    return counts;
  }

  /** The names that the coordinator has for the users of a range, by their ids. */
  async function claimed(gt: number, lte: number): Promise<Map<number, string>> {
    const found = new Map<number, string>();
    let after = idBytes(gt);
    for (let isTruncated = true; isTruncated;) {
      const page = await client.listRecords(
        {
          cellId: 1n,
          sourceType: USERS_TABLE,
          sourceIdGt: after,
          sourceIdLte: idBytes(lte),
          claimTypes: [USERNAME],
        },
        DEADLINE,
      );
      for (const { metadata: of, status } of page.records) {
        after = Uint8Array.from(of?.source?.railsPrimaryKeyId ?? []);
        expect(status).toBe(Record_Status.ACTIVE);
        found.set(Number(Buffer.from(after).readBigUInt64BE()), String(of?.claim?.claim.value));
      }
      isTruncated = page.truncated;
    }
    return found;
  }

  test("saves users, recovers leases after crashes, and verifies by ranges of ids", async () => {
    const names = Array.from({ length: 5 }, () => freshName());
    const [ada = "", grace = "", edsger = "", barbara = "", lost = ""] = names;
    const first = await save(1, ada);
    await database.query("COMMIT");
    await decide("commitUpdate", first);

    // The same name again: the transaction is rolled back, and nothing of it stays.
    expect((await failure(save(2, ada.toUpperCase()))).code).toBe(6);
    // The process ends after its COMMIT, twice, and before it, twice.
    for (const [id, name] of [
      [3, grace],
      [4, edsger],
    ] as const) {
      await save(id, name);
      await database.query("COMMIT");
    }
    for (const [id, name] of [
      [5, barbara],
      [6, lost],
    ] as const) {
      await save(id, name);
      await database.query("ROLLBACK");
    }
    expect(await outstanding()).toHaveLength(2);
    expect(await reconcile()).toEqual({ committed: 2, rolledBack: 2 });
    expect(await outstanding()).toEqual([]);
    expect(await reconcile()).toEqual({ committed: 0, rolledBack: 0 });

    const { rows } = await database.query<{ id: string; username: string }>("SELECT id, username FROM users");
    const local = new Map(rows.map(({ id, username }) => [Number(id), username]));
    expect(await claimed(0, 1_000)).toEqual(local);
    expect(local).toEqual(
      new Map([
        [1, ada],
        [3, grace],
        [4, edsger],
      ]),
    );
    const freed = await save(7, lost);
    await database.query("COMMIT");
    await decide("commitUpdate", freed);
  });
});
