/** Tests the program `npm run reconcile` against a server with prepared answers. */
import { execFile } from "node:child_process";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);
const KEY = `lhk_${"a".repeat(40)}.${"b".repeat(43)}`;

const point = { incarnation: 17, position: 41 };
const lost = {
  id: "shard-3",
  state: "lost",
  point,
  loss: {
    noticed_by: "the ledger of cell 7",
    noticed_at: "2026-11-20T12:00:00.000Z",
    seen: { incarnation: 17, position: 99 },
    point,
  },
};
const reconciling = { ...lost, state: "reconciling" };
const declared = { noticed_by: "an operator", noticed_at: "2026-11-20T12:00:00.000Z", seen: null, point };
const answers: Record<string, unknown> = {
  "GET /v1/admin/parts/shard-4": { part: { ...reconciling, id: "shard-4", loss: declared } },
  "GET /v1/admin/parts/shard-3": { part: lost },
  "POST /v1/admin/parts/directory/reconcile": {
    part: { id: "directory", state: "complete", point, loss: null },
    dry_run: false,
    lost_leases: [],
    rebuilt_leases: [],
    unreachable: [],
    restored: { cells: ["3", "8"], keys: 5, revocations: 2, types: ["HANDLES", "PEOPLE"] },
  },
  "POST /v1/admin/parts/shard-3/finish": { part: { ...lost, state: "complete", loss: null } },
};

let server: Server;
let url: string;
let sent: { call: string; body: unknown }[];

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      const call = `${request.method} ${request.url}`;
      const body = text === "" ? undefined : (JSON.parse(text) as { dry_run: boolean });
      sent.push({ call, body });
      const isDryRun = body?.dry_run === true;
      const answer = answers[call] ?? {
        part: isDryRun ? lost : reconciling,
        dry_run: isDryRun,
        lost_leases: [{ cell_id: "7", outstanding: 1, decided: 58, leases: ["the-lease"] }],
        rebuilt_leases: [{ shard: 2, holds: 5, leases: 2 }],
        unreachable: ["ledger-9"],
      };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  url = `http://127.0.0.1:${address.port}`;
});

afterAll(() => server.close());

beforeEach(() => {
  sent = [];
});

async function reconcile(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const env = { ...process.env, LEASEHOLD_URL: url, LEASEHOLD_OPERATOR_KEY: KEY };
  try {
    return {
      code: 0,
      ...(await run(process.execPath, ["scripts/reconcile.ts", ...args], { cwd: root, env })),
    };
  } catch (error) {
    return error as { code: unknown; stdout: string; stderr: string };
  }
}

test("says what the directory gets back from its copies", async () => {
  const { stdout } = await reconcile("directory", "--apply", "--reason", "restored from a backup");
  expect(stdout).toContain("directory is complete.");
  expect(stdout).toContain(
    "2 cells (3, 8), 5 keys, 2 revocations and 2 types (HANDLES, PEOPLE) were restored.",
  );
});

test("without an option it shows what was noticed", async () => {
  const { code, stdout } = await reconcile("shard-3");
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout:
      "shard-3 is lost. Its newest point: position 41 of incarnation 17.\n" +
      "2026-11-20T12:00:00.000Z: the ledger of cell 7 had seen position 99 of incarnation 17.\n" +
      "What was left then: position 41 of incarnation 17.\n",
  });
});

test("a dry run and --apply say what would be and what was done", async () => {
  const dryRun = await reconcile("shard-3", "--dry-run");
  expect(dryRun.stdout).toContain(
    "Cell 7: 58 decided leases and 1 open ones are lost, among them the-lease.\n" +
      "shard-2: 2 leases would be granted again, from 5 holds.\n" +
      "Could not be asked: ledger-9.\n" +
      "Nothing was changed.\n",
  );
  const applied = await reconcile("shard-3", "--apply", "--reason", "a restore");
  expect(applied.stdout).toContain("shard-2: 2 leases were granted again, from 5 holds.\n");
  expect(applied.stdout).toMatch(/Let every cell verify twice without changes, then use --finish\.\n$/);
  expect(sent).toEqual([
    { call: "POST /v1/admin/parts/shard-3/reconcile", body: { dry_run: true, reason: "dry run" } },
    { call: "POST /v1/admin/parts/shard-3/reconcile", body: { dry_run: false, reason: "a restore" } },
  ]);
});

test("--declare-lost is sent with a dry run and with --apply, and shown as what it is", async () => {
  await reconcile("shard-3", "--dry-run", "--declare-lost");
  await reconcile("shard-3", "--apply", "--declare-lost", "--reason", "a restore");
  expect(sent.map(({ body }) => body)).toEqual([
    { dry_run: true, declare_lost: true, reason: "dry run" },
    { dry_run: false, declare_lost: true, reason: "a restore" },
  ]);
  expect((await reconcile("shard-4")).stdout).toContain(
    "2026-11-20T12:00:00.000Z: an operator declared a loss.\n",
  );
});

test("the operator key is read from the environment only", async () => {
  const given = await reconcile("shard-3", "--key", KEY);
  expect([given.code, given.stderr]).toEqual([1, expect.stringContaining("Unknown option '--key'")]);
  const { LEASEHOLD_OPERATOR_KEY: _, ...env } = process.env;
  const without = run(process.execPath, ["scripts/reconcile.ts", "shard-3", "--url", url], {
    cwd: root,
    env,
  });
  await expect(without).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("LEASEHOLD_OPERATOR_KEY is required") as unknown,
  });
  expect(sent).toEqual([]);
});

test("--finish takes the part back into service", async () => {
  const { stdout } = await reconcile("shard-3", "--finish", "--reason", "all have verified");
  expect(stdout).toMatch(/^shard-3 is complete\./);
  expect(sent.map(({ body }) => body)).toEqual([{ reason: "all have verified" }]);
});

test.each([
  [[], "give one part, such as shard-3, ledger-7 or directory"],
  [["shard-1", "shard-2"], "give one part, such as shard-3, ledger-7 or directory"],
  [["shard-3", "--apply"], "--apply needs --reason, a text that is logged"],
  [["shard-3", "--finish"], "--finish needs --reason, a text that is logged"],
  [["shard-3", "--dry-run", "--finish"], "give only one of --dry-run, --apply and --finish"],
  [["shard-3", "--declare-lost"], "--declare-lost needs --dry-run or --apply"],
  [["shard-3", "--finish", "--declare-lost", "--reason", "r"], "--declare-lost needs --dry-run or --apply"],
  [["shard-3", "--url", ""], "--url or LEASEHOLD_URL is required"],
  [["shard-3", "--bogus"], "Unknown option '--bogus'"],
])("%j is refused without a call", async (args, sentence) => {
  const { code, stdout, stderr } = await reconcile(...args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(sentence);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(sent).toEqual([]);
});

test("--help shows the usage", async () => {
  expect((await reconcile("--help")).stdout).toMatch(/^Usage: npm run reconcile -- <part> \[options\]\n/);
});
