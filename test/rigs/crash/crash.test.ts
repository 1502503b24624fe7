/** A slice of the crash rig that runs with every change. `npm run crash` runs all of it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import type { Batch } from "../../../src/users/client/index.ts";
import { addHolds } from "../../support/holds.ts";
import { inSlice, slice } from "../../support/slice.ts";
import { buildWorker } from "../../../scripts/bundle.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { NodeSql } from "../../../src/hosts/node/sqlite-database.ts";
import { armVariables, CRON_PATH, exempt, failpoints, namedWrites, objectWrites } from "./failpoints.ts";
import { claimOf, LocalDatabase, type Row } from "./local-database.ts";
import { describeRound, matrix, drawRoundSettings } from "./round-settings.ts";
import type { Answered, Call, Kind } from "./record.ts";
import { makeTemplate, quickLimits, runRound } from "./round.ts";
import { hostKinds, killAll, Server } from "./server.ts";
import { fileOf, readStores } from "./state-files.ts";
import { Verifier } from "./verify.ts";

const root = join(import.meta.dirname, "../../..");
const folder = mkdtempSync(join(tmpdir(), "crash-test-"));
const SLOW_MS = 900_000;

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** Texts that occur only in the failpoints. */
const marks = [...Object.values(armVariables), CRON_PATH, "reportWhenDead", "wrappedD1"];
const marksIn = (text: string): string[] => marks.filter((mark) => text.includes(mark));

test("a production bundle contains no failpoints", { timeout: SLOW_MS }, async () => {
  const bundle = (...entry: string[]): string =>
    execFileSync(process.execPath, [join(import.meta.dirname, "bundle.ts"), ...entry], {
      encoding: "utf8",
      maxBuffer: 2 ** 26,
    });
  expect(marksIn(bundle(join(import.meta.dirname, "worker.ts")))).toEqual(marks);
  const started = bundle();
  expect(started).toContain("CellLedger");
  expect(marksIn(started)).toEqual([]);

  const outdir = join(folder, "dist");
  await buildWorker(outdir);
  const deployed = readdirSync(outdir).filter((name) => /\.(js|map)$/.test(name));
  expect(deployed).toEqual(expect.arrayContaining(["index.js", "index.js.map"]));
  for (const name of deployed) expect(marksIn(readFileSync(join(outdir, name), "utf8"))).toEqual([]);
  execFileSync(process.execPath, [join(root, "scripts/build-standalone.mjs")], { cwd: root });
  const standalone = join(root, "dist/standalone");
  for (const name of readdirSync(standalone).filter((file) => file.endsWith(".mjs")))
    expect(marksIn(readFileSync(join(standalone, name), "utf8")), name).toEqual([]);
  for (const name of deployed.filter((file) => file.endsWith(".map"))) {
    const { sources } = JSON.parse(readFileSync(join(outdir, name), "utf8")) as { sources: string[] };
    expect(sources.filter((source) => /(^|\/)test\//.test(source))).toEqual([]);
  }
});

test("every durable write has a failpoint round, or a reason to have none", () => {
  const names = failpoints.map(({ name }) => name);
  const fromObjects = [...names, ...Object.keys(exempt)].filter((name) => !name.startsWith("cron:"));
  expect(fromObjects.toSorted()).toEqual(objectWrites.toSorted());
  expect(matrix.map(({ failpoint, side }) => `${side} ${failpoint.name}`).toSorted()).toEqual(
    names.flatMap((name) => [`before ${name}`, `after ${name}`]).toSorted(),
  );
});

test("every write of the cron to D1 has a failpoint round, or a reason to have none", () => {
  const sources = join(root, "src/coordinator");
  const files = readdirSync(sources, { recursive: true, encoding: "utf8" });
  const tasks = files
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) =>
      [
        ...readFileSync(join(sources, name), "utf8").matchAll(
          /database\.run\(\s*"([^"]+)"|\.run\("(health)"/g,
        ),
      ].map(([, task, other]) => task ?? other ?? ""),
    );
  // Requests write or read these: the record of used credentials, the health check, the stale listing and the
  // directory's reconciliation.
  const others = new Set([
    "health",
    "read freshness",
    "read stale leases",
    "restart keys",
    "list webhooks",
    "add webhook",
    "change webhook",
    "remove webhook",
    "begin test",
    "end test",
    "list deliveries",
    "save credential uses",
    "list credential uses",
  ]);
  const writes = tasks.filter((task) => !others.has(task) && !task.startsWith("read "));
  const named = [...failpoints.map(({ name }) => name), ...Object.keys(exempt)].filter((name) =>
    name.startsWith("cron:"),
  );
  expect(named.toSorted()).toEqual(writes.map((task) => `cron:${task}`).toSorted());
  expect(namedWrites.toSorted()).toEqual(named.toSorted());
});

type Asked = [method: string, path: string, body?: string | null];

test.each(inSlice(hostKinds, hostKinds.length))(
  "%s: a failpoint before a write leaves nothing durable, one after it everything, and neither is answered",
  { timeout: SLOW_MS },
  async (host) => {
    const here = join(folder, `exact-${host}`);
    mkdirSync(here);
    const port = await freePort();
    const servers: Server[] = [];
    const harness = createServer((_request, response) => {
      void servers.at(-1)?.kill("group");
      response.end();
    });
    await new Promise<void>((listening) => harness.listen(0, "127.0.0.1", listening));
    const { port: reportPort } = harness.address() as AddressInfo;
    const row: Row = { type: "ROUTES", value: "exact", subject: 1, source: 1 };
    const lease = "/v1/cells/1/leases/00000000-0000-4000-8000-000000000000";
    const call = async (server: Server, ...[method, path, body = null]: Asked): Promise<string> => {
      const headers = {
        authorization: `Bearer ${server.keys.cells["1"]}`,
        "content-type": "application/json",
      };
      const answer = await fetch(`${server.url}${path}`, { method, headers, body: body ?? null }).catch(
        () => undefined,
      );
      const { lease: found, code } = ((await answer?.json()) ?? {}) as {
        lease?: { state: string };
        code?: string;
      };
      return found?.state ?? code ?? "no answer";
    };
    const begin: Asked = ["PUT", lease, JSON.stringify({ creates: [claimOf(row)] })];
    const commit: Asked = ["POST", `${lease}/commit`];
    const steps = [
      { point: "ledger:grant", side: "before", found: "NOT_FOUND", dies: begin },
      { point: "ledger:grant", side: "after", found: "NOT_FOUND", dies: begin },
      { point: "ledger:decide", side: "before", found: "GRANTED", dies: commit },
      { point: "ledger:decide", side: "after", found: "GRANTED", dies: commit },
    ];
    for (const { point, side, found, dies } of steps) {
      const reportUrl = `http://127.0.0.1:${reportPort}/`;
      const variables = {
        [armVariables.point]: point,
        [armVariables.side]: side,
        [armVariables.hit]: "1",
        [armVariables.reportUrl]: reportUrl,
      };
      const server = new Server({ host, kind: "failing", port, folder: here, variables });
      servers.push(server);
      expect(await server.ready(), server.output).toBe(true);
      expect(await call(server, "GET", lease)).toBe(found);
      expect(await call(server, ...dies)).toBe("no answer");
      await server.ended;
    }
    const last = new Server({ host, kind: "production", port, folder: here });
    expect(await last.ready(), last.output).toBe(true);
    expect(await call(last, "GET", lease)).toBe("COMMITTED");
    expect(await last.stop()).toBe(0);
    harness.close();
  },
);

/** A failpoint round of one host, and a random round of the other. */
const isSwapped = Math.floor(slice / matrix.length) % 2 === 1;
const [hostOfFailpoint = "start", hostOfRandom = "standalone"] = isSwapped
  ? hostKinds.toReversed()
  : hostKinds;
const rounds = [
  { moment: "at a failpoint", host: hostOfFailpoint, number: (slice % matrix.length) + 1 },
  { moment: "at random", host: hostOfRandom, number: matrix.length + 1 + (slice % 1_000) },
];

test.each(rounds)(
  "a server that is killed $moment and started again",
  { timeout: SLOW_MS },
  async ({ host, number }) => {
    const template = join(folder, `template-${number}`);
    await makeTemplate(template, host);
    const settings = drawRoundSettings(slice, number, host);
    const { moment, kill } = describeRound(settings);
    const { complaints, kills } = await runRound(settings, join(folder, `round-${number}`), template);
    expect(
      complaints,
      `${kill} ${moment}; to repeat it: npm run crash -- --host ${host} --seed ${slice} --round ${number}`,
    ).toEqual([]);
    expect(kills).toBeGreaterThan(0);
  },
);

interface Lease {
  lease: string;
  row: Row;
  /** The last call of its cell. */
  lastCall: Kind;
}

test("the verification reports lost, invented and leftover state", { timeout: SLOW_MS }, async () => {
  const here = join(folder, "tampered");
  mkdirSync(here);
  const variables = { ...quickLimits, LEASEHOLD_SHARDS: "1" };
  const port = await freePort();
  const start = async (): Promise<Server> => {
    const server = new Server({ kind: "production", port, folder: here, variables });
    expect(await server.ready(), server.output).toBe(true);
    return server;
  };
  const leases: Lease[] = ["lost", "undone", "held", "right"].map((value, index) => ({
    lease: `00000000-0000-4000-8000-00000000000${index}`,
    row: { type: "ROUTES", value, subject: 1, source: index + 1 },
    lastCall: "commit",
  }));
  const first = await start();
  const database = new LocalDatabase(join(here, "cell-1.sqlite"));
  const calls: Call[] = [];
  for (const { lease, row } of leases) {
    const batch: Batch = { creates: [claimOf(row)] };
    for (const [kind, method, path, body] of [
      ["begin", "PUT", "", JSON.stringify(batch)] as const,
      ["commit", "POST", "/commit", null] as const,
    ]) {
      const headers = {
        authorization: `Bearer ${first.keys.cells["1"]}`,
        "content-type": "application/json",
      };
      const { status } = await fetch(`${first.url}/v1/cells/1/leases/${lease}${path}`, {
        method,
        headers,
        body,
      });
      expect(status).toBeLessThan(300);
      const answer: Answered = { kind: "ok" };
      calls.push({
        id: `${lease} ${kind}`,
        client: "test",
        cell: "1",
        kind,
        lease,
        batch,
        calledAtMs: 0,
        returnedAtMs: 1,
        tries: 1,
        answer,
      });
    }
    database.insert(row);
  }
  const judged = async (server: Server): Promise<string[]> => {
    const deployment = {
      url: server.url,
      keys: server.keys,
      fetch: (url: string, init: RequestInit) => fetch(url, init),
    };
    return new Verifier(deployment, [{ cell: "1", database }], { calls, problems: [] }).all({ sweepsMs: 0 });
  };
  expect(await judged(first)).toEqual([]);
  await first.stop();

  const objects = join(here, "state/storage/do");
  const change = (className: string, table: string, sql: string): void => {
    const at = join(objects, `leasehold-${className}`);
    for (const name of readdirSync(at).filter(
      (file) => file.endsWith(".sqlite") && !file.startsWith("metadata"),
    )) {
      const file = new DatabaseSync(join(at, name));
      if (file.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(table) !== undefined) file.exec(sql);
      file.close();
    }
  };
  change("ClaimShard", "claim", "DELETE FROM claim WHERE canonical = 'lost'");
  change("CellLedger", "lease", "UPDATE lease SET state = 'ROLLED_BACK' WHERE lease LIKE '%1'");
  // The ledger's own incarnation, because a ledger that is asked about another one has lost it (B8, H4).
  const ledger = new DatabaseSync(fileOf(join(here, "state"), "cell-1"), { readOnly: true });
  const newest = ledger.prepare("SELECT max(incarnation) AS newest FROM incarnation").get();
  ledger.close();
  const shard = new DatabaseSync(fileOf(join(here, "state"), "shard-0"));
  const attempt = { lease: leases[3]?.lease ?? "", incarnation: Number(newest?.["newest"]), counter: 999 };
  addHolds(new NodeSql(shard), [{ canonical: "held", ...attempt, epoch: 999 }]);
  shard.close();
  expect(readStores(join(here, "state")).leftovers).toEqual([
    expect.stringContaining("shard-0 holds held for a destroy"),
  ]);

  const second = await start();
  const complaints = (await judged(second)).join("\n");
  expect(complaints).toContain("ROUTES lost: cell 1 owns it, but a lookup finds no owner");
  expect(complaints).toContain("cell 1 has a row without a record: ROUTES lost");
  expect(complaints).toContain("01 is ROLLED_BACK, though its cell received: begin ok, commit ok");
  expect(complaints).toContain("ROUTES undone: it has no owner, but a lookup finds ACTIVE of cell 1");
  expect(complaints).not.toContain("right");
  await second.stop();
  database.close();
});
