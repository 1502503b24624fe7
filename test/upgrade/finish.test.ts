/** An upgrade from its first part to its end, with a made-up next format. */
import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Stamp } from "../../src/coordinator/kernel/formats.ts";
import type * as contract from "../../src/coordinator/capabilities/growth/edge/routes.ts";
import { Host } from "../../src/hosts/node/host.ts";
import { MemoryStore } from "../../src/hosts/node/object-store.ts";
import { SqliteDatabase } from "../../src/hosts/node/sqlite-database.ts";
import { TestClock } from "../../src/users/testing/clock.ts";
import { makeKeys } from "../../src/users/testing/coordinator.ts";
import { runVersion } from "./next-formats.ts";

vi.mock("../../src/coordinator/kernel/formats.ts", async (original) => {
  const { formats } = await import("./next-formats.ts");
  return Object.defineProperties(
    { ...(await original<object>()) },
    Object.getOwnPropertyDescriptors(formats),
  );
});

runVersion(2);

// A route of the next version.
vi.mock("../../src/coordinator/capabilities/growth/edge/routes.ts", async (original) => {
  const { growthRoutes } = await original<typeof contract>();
  return { growthRoutes: { ...growthRoutes, getGrowth: { ...growthRoutes.getGrowth, format: 2 } } };
});

class Deployment {
  /** The objects that run the version before. */
  readonly older = new Set<string>();
  readonly d1 = new SqliteDatabase();
  readonly #clock = new TestClock();
  readonly #secret = randomBytes(32).toString("hex");
  readonly #host: Host = this.#newHost();

  /** Starts a deployment. One whose directory runs the version before has its format in force. */
  static async start(directory: "older" | "newer" = "older"): Promise<Deployment> {
    const deployment = new Deployment();
    onTestFinished(() => deployment.#end());
    if (directory === "older") deployment.older.add("directory");
    const cell = { cell_id: "1", name: "cell-1", address: "https://cell-1.test" };
    expect(await deployment.call("POST", "/v1/admin/cells", cell)).toMatchObject({ status: 201 });
    deployment.older.clear();
    deployment.restart();
    return deployment;
  }

  #newHost(): Host {
    return new Host({
      clock: this.#clock,
      log: () => {},
      variables: { LEASEHOLD_SIGNING_SECRET: this.#secret, LEASEHOLD_SHARDS: "2" },
      store: () => new MemoryStore(),
      d1: this.d1,
      portsOf: (name, ports) => ({ ...ports, speaks: this.older.has(name) ? 1 : 2 }),
    });
  }

  /** Ends all instances and the isolate. The next ones run the version that they have now. */
  restart(): void {
    this.#host.restart();
  }

  #end(): void {
    this.#host.close();
    this.#clock.stop();
  }

  async call(method: string, path: string, body?: object): Promise<{ status: number; body: never }> {
    const keys = await makeKeys(this.#secret, ["1"], this.#clock.now(), 3_600);
    const headers = { authorization: `Bearer ${keys.operator}`, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await this.#host.dispatch(
      new Request(`http://localhost${path}`, { method, headers, ...sent }),
    );
    return { status: answer.status, body: (await answer.json()) as never };
  }

  upgrade = () => this.call("GET", "/v1/admin/upgrade");
  finish = (format = 2) => this.call("POST", "/v1/admin/upgrade/finish", { format, reason: "a quiet day" });

  /** Calls an object as code of a version does. */
  async send(stamp: Stamp): Promise<unknown> {
    const stub = this.#host.env.CLAIM_SHARD.getByName("shard-0") as unknown as {
      ping: (message: object) => Promise<unknown>;
    };
    return stub.ping({ ...stamp, placement: "hash1.shards2.canonical1" });
  }
}

const stateOf = (upgrade: object) => ({ status: 200, body: { upgrade } });
const blockerOf = (part: string, cause: string) => expect.objectContaining({ part, cause }) as object;
const refusalOf = (status: number, reason: string) => ({ status, body: { reason } });

test("[M9] an upgrade waits for older parts, older callers and D1, and is finished once", async () => {
  const deployment = await Deployment.start();
  deployment.older.add("shard-1").add("cell-1");
  deployment.restart();
  await deployment.send({ speaks: 1, format: 1 });
  deployment.d1.all("UPDATE d1_migrations SET name = '_' || name");
  expect(await deployment.upgrade()).toMatchObject(
    stateOf({
      format: 1,
      newest_format: 2,
      is_finished: false,
      waiting_features: ["a cell can be renamed"],
      blockers: [
        blockerOf("shard-0", "OLDER_CALLERS"),
        blockerOf("shard-1", "OLDER_CODE"),
        blockerOf("ledger-1", "OLDER_CODE"),
        blockerOf("d1", "MISSING_MIGRATION"),
      ],
    }),
  );
  const refused = await deployment.finish();
  expect(refused).toMatchObject(refusalOf(409, "UPGRADE_BLOCKED"));
  expect((refused.body as { detail: string }).detail).toContain(
    "shard-1 (its version knows format 1 at most)",
  );
  deployment.older.clear();
  deployment.restart();
  deployment.d1.all("UPDATE d1_migrations SET name = substr(name, 2)");
  const finished = stateOf({ format: 2, is_finished: true, waiting_features: [], blockers: [] });
  expect(await deployment.finish()).toMatchObject(finished);
  // Nothing but the directory knows it when the isolate and the objects are new.
  deployment.restart();
  expect(await deployment.finish()).toMatchObject(finished);
  const { body } = await deployment.call("GET", "/v1/admin/growth");
  expect(body).toMatchObject({ shards: 2 });
});

test("[M9] the shards that a growth adds are asked, too", async () => {
  const deployment = await Deployment.start();
  const growth = { shards: 4, reason: "more load" };
  expect(await deployment.call("POST", "/v1/admin/growth", growth)).toMatchObject({ status: 200 });
  await deployment.call("POST", "/v1/admin/growth/steps");
  deployment.older.add("shard-3");
  deployment.restart();
  expect(await deployment.upgrade()).toMatchObject(
    stateOf({ blockers: [blockerOf("shard-3", "OLDER_CODE")] }),
  );
});

test("[M9] only the newest format of the Worker can be put in force", async () => {
  const deployment = await Deployment.start();
  for (const format of [1, 3])
    expect(await deployment.finish(format)).toMatchObject(refusalOf(409, "UPGRADE_BLOCKED"));
  expect(await deployment.upgrade()).toMatchObject(stateOf({ format: 1 }));
});

test("[M9] a new deployment has the newest format in force", async () => {
  const deployment = await Deployment.start("newer");
  expect(await deployment.upgrade()).toMatchObject(stateOf({ format: 2, is_finished: true, blockers: [] }));
});

test("[M9] a route of a format works once that is in force, also in a new isolate", async () => {
  const deployment = await Deployment.start();
  const show = () => deployment.call("GET", "/v1/admin/growth");
  expect(await show()).toMatchObject(refusalOf(409, "UPGRADE_UNFINISHED"));
  await deployment.finish();
  expect(await show()).toMatchObject({ status: 200 });
  deployment.restart();
  expect(await show()).toMatchObject({ status: 200 });
});

test("[M9] an isolate of older code refuses everything once the upgrade is finished", async () => {
  const deployment = await Deployment.start();
  await deployment.finish();
  runVersion(1);
  onTestFinished(() => runVersion(2));
  deployment.restart();
  expect(await deployment.call("GET", "/v1/admin/cells")).toMatchObject({ status: 503 });
  expect(await deployment.call("GET", "/v1/admin/audit")).toMatchObject(refusalOf(503, "FORMAT_UNKNOWN"));
});

test("[M5] [M9] an object that runs older code again is refused by name, and loses nothing", async () => {
  const deployment = await Deployment.start();
  await deployment.finish();
  deployment.older.add("shard-0");
  deployment.restart();
  expect(await deployment.send({ speaks: 2, format: 2 })).toMatchObject({
    refusal: { reason: "UNKNOWN_TABLES", detail: expect.stringContaining("format 2 is in force") as string },
  });
  const blockers = [blockerOf("shard-0", "UNREACHABLE")];
  expect(await deployment.upgrade()).toMatchObject(stateOf({ format: 2, blockers }));
  deployment.older.clear();
  deployment.restart();
  expect(await deployment.upgrade()).toMatchObject(stateOf({ format: 2, blockers: [] }));
});
