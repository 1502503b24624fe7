/** Cells in a Worker. The platform drops what a request still does when it has been answered. */
import { build } from "esbuild";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { withoutSignalHandlers, workerdWrapper } from "../../../../src/hosts/workerd/workerd.ts";
import { pg } from "../../../../src/users/cell/pg/index.ts";
import { toNodeListener } from "../../../../src/users/router-node/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { clientOf } from "../../../support/client-of.ts";
import { isSkipped } from "../../../support/databases/available.ts";
import { startPostgres } from "../../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";

/** What the Worker waits for: "connection" to the database, or the method and path of a request. */
type Step = string;

/** The step that never ends, and when it was reached and dropped by the platform. */
let hanging = hang(() => false);
/** Resolves when requests to the Worker are to be answered although their calls have not ended. */
let answerNow = Promise.withResolvers<void>();

function hang(isIt: (step: Step) => boolean) {
  const [reached, dropped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return { isIt, reached, dropped };
}

/** Whether the step of a connection hangs. */
function hangs(step: Step, connection: { once(event: "close", listener: () => void): unknown }): boolean {
  const { isIt, reached, dropped } = hanging;
  if (!isIt(step)) return false;
  connection.once("close", () => dropped.resolve());
  reached.resolve();
  return true;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function databaseProxy({ host, port }: DatabaseServer["connection"]): Server {
  return createTcpServer((client) => {
    client.on("error", () => {});
    if (hangs("connection", client)) return void client.resume();
    const database = connect(port, host).on("error", () => client.destroy());
    client.pipe(database).pipe(client);
    client.on("close", () => database.destroy());
  });
}

function coordinatorServer(coordinator: TestCoordinator): Server {
  const forward: RequestListener = toNodeListener(({ url, method, headers, body }) => {
    const { pathname, search } = new URL(url);
    return coordinator.fetch(`${coordinator.url}${pathname}${search}`, {
      method,
      headers,
      body,
      ...(body === null ? {} : { duplex: "half" }),
    });
  });
  return createServer((request, response) => {
    const { method, url } = request;
    if (url === "/answer-now") void answerNow.promise.then(() => response.end());
    else if (!hangs(`${method} ${url}`, response)) forward(request, response);
  });
}

async function bundled(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "../../../support/workerd/cell-worker.ts")],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "es2024",
    conditions: ["workerd"],
    external: ["cloudflare:*", "pg-native"],
    // node-postgres is CommonJS.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire("/");' },
  });
  return outputFiles.map(({ text }) => text).join("");
}

describe.skipIf(isSkipped("PostgreSQL"))("a Worker whose requests share a cell", () => {
  let database: DatabaseServer;
  let coordinator: TestCoordinator;
  let servers: Server[];
  let miniflare: Miniflare;
  let url: URL;

  beforeAll(async () => {
    database = await startPostgres();
    coordinator = await startTestCoordinator({ cells: ["1"] });
    servers = [databaseProxy(database.connection), coordinatorServer(coordinator)];
    const [databasePort = 0, coordinatorPort = 0] = await Promise.all(servers.map(listen));
    const name = await database.createDatabase();
    const pool = new Pool({ connectionString: database.url(name) });
    await pg(pool).install();
    await pool.query("CREATE TABLE users (id serial PRIMARY KEY, username text NOT NULL UNIQUE)");
    await pool.end();
    process.env["MINIFLARE_WORKERD_PATH"] ??= workerdWrapper();
    const modules = [{ type: "ESModule" as const, path: "index.js", contents: await bundled() }];
    miniflare = withoutSignalHandlers(
      () =>
        new Miniflare(
          convertV4MiniflareOptions({
            host: "127.0.0.1",
            port: 0,
            // Otherwise Miniflare would ask a server of Cloudflare where this machine is.
            cf: false,
            modules,
            compatibilityDate: "2026-10-01",
            compatibilityFlags: ["nodejs_compat"],
            bindings: {
              DATABASE_URL: Object.assign(new URL(database.url(name)), { port: databasePort }).href,
              LEASEHOLD_URL: `http://127.0.0.1:${coordinatorPort}`,
              LEASEHOLD_KEY: coordinator.keys.cell("1"),
            },
          }),
        ),
    );
    url = await miniflare.ready;
  });
  afterEach(() => {
    hanging = hang(() => false);
    answerNow = Promise.withResolvers();
  });
  afterAll(async () => {
    await miniflare?.dispose();
    for (const server of servers) server.close();
    await coordinator.close();
    await database.stop();
  });

  const call = async (path: string): Promise<string> => (await fetch(new URL(path, url))).text();

  /** Drops the step with a number of a call. Returns the answer if there is no such step. */
  async function dropAt(step: number, path: string): Promise<string | undefined> {
    let steps = 0;
    const its = hang(() => (steps += 1) === step);
    hanging = its;
    const answered = call(path);
    const answer = await Promise.race([its.reached.promise, answered]);
    hanging = hang(() => false);
    if (answer !== undefined) return answer;
    answerNow.resolve();
    await answered;
    await its.dropped.promise;
    answerNow = Promise.withResolvers();
    return undefined;
  }

  test("a call that was dropped at any step keeps no later one waiting", async () => {
    let step = 0;
    for (let answer: string | undefined; answer !== "done";) {
      step += 1;
      answer = await dropAt(step, `/${step}/insert/dropped-${step}`);
      // A begin that was dropped has its place until its deadline.
      await expect.poll(() => call(`/${step}/insert/later-${step}`)).toBe("done");
      expect(await call(`/${step}/reconcile`)).toBe("done");
      expect(await call(`/${step}/flush`)).toBe("done");
    }
    expect(step).toBeGreaterThan(10);
  });

  test("a cell claims, reconciles and verifies", async () => {
    for (const path of ["insert/grace", "reconcile", "verify"])
      expect(await call(`/verified/${path}`)).toBe("done");
    const [claimed] = await clientOf(coordinator).records.lookup([{ type: "USERNAMES", value: "grace" }]);
    expect(claimed).toMatchObject({ found: true });
  });

  test("a rollback that was dropped keeps no flush waiting", async () => {
    hanging = hang((step) => step.includes("/leases/"));
    expect(await call("/cell/insert/ada")).toContain("no answer within");
    await hanging.dropped.promise;
    hanging = hang(() => false);
    expect(await call("/cell/flush")).toBe("done");
  });
});
