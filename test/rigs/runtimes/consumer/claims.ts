/**
 * The life of a cell with every driver: claims, collisions, an interrupted commit, verification, an export.
 * The coordinator is in another process, so the client uses the `fetch` of the runtime. Prints one line for
 * each driver.
 */
import assert from "node:assert/strict";
import { claimable, createCell, toValidationErrors } from "leasehold/cell";
import { AlreadyClaimedError, createClient } from "leasehold/client";
import { drivers } from "./drivers.ts";
import { createDatabase, runStatement } from "./databases.ts";
import { startServed } from "./served.ts";

const USERS = {
  postgres: "CREATE TABLE users (id serial PRIMARY KEY, username text UNIQUE NOT NULL)",
  mysql: "CREATE TABLE users (id int AUTO_INCREMENT PRIMARY KEY, username varchar(80) UNIQUE NOT NULL)",
} as const;

const ids = drivers.map((_, index) => String(index + 1));
const coordinator = await startServed(ids);

const bucket = (value: string) => ({ type: "USERNAMES", value }) as const;

for (const [index, driver] of drivers.entries()) {
  const id = ids[index] ?? "";
  const url = await createDatabase(driver.dialect);
  await runStatement(driver.dialect, url, USERS[driver.dialect]);

  const options = { url: coordinator.url, key: coordinator.keys[id] ?? "", cell: id };
  const client = createClient(options);
  const ownerOf = async (name: string): Promise<string | undefined> =>
    (await client.records.find(bucket(name)))?.cell.id;
  let isCut = false;
  const connected = driver.connect(url);
  const { users, named, database } = connected;
  const cell = createCell<unknown>({
    client: createClient({
      ...options,
      retries: 0,
      fetch: (to, init) =>
        isCut && to.endsWith("/commit") ? Promise.reject(new TypeError("cut")) : fetch(to, init),
    }),
    database,
    // No check depends on the speed of the machine.
    beginDeadlineMs: 10_000,
    tables: [
      claimable(users, {
        source: "RAILS_TABLE_USERS",
        subject: { type: "USER", id: "id" },
        attributes: { username: "USERNAMES" },
      }),
    ],
  });
  await cell.install();
  const signUp = (username: string): Promise<unknown> =>
    cell.transaction((tx) => tx.insert(users, { username } as never));

  const [ada, grace] = [`ada-${id}`, `grace-${id}`];
  await signUp(ada);
  await cell.transaction((tx) => tx.update(users, named(ada) as never, { username: grace } as never));
  assert.deepEqual([await ownerOf(ada), await ownerOf(grace)], [undefined, id]);

  if (index === 0) await signUp("everybodys");
  else {
    const error: unknown = await signUp("everybodys").catch((thrown: unknown) => thrown);
    assert(error instanceof AlreadyClaimedError);
    const [problem] = toValidationErrors(error);
    assert.deepEqual([problem?.field, problem?.problem], ["username", "taken"]);
  }

  isCut = true;
  await signUp(`cut-${id}`);
  isCut = false;
  const { counters } = await cell.reconcile({ commitGraceMs: 0 });
  assert.equal(counters.committed, 1);

  await runStatement(driver.dialect, url, `INSERT INTO users (username) VALUES ('unseen-${id}')`);
  const report = await cell.verify({ apply: true, recentMs: 0 });
  assert.equal(report.status, "done");
  assert.equal(await ownerOf(`unseen-${id}`), id);

  await cell.transaction((tx) => tx.delete(users, named(grace) as never));
  const exported: string[] = [];
  for await (const { bucket: exportedBucket } of client.records.export({ sourceType: "RAILS_TABLE_USERS" }))
    exported.push(exportedBucket.value);
  const expected = [...(index === 0 ? ["everybodys"] : []), `cut-${id}`, `unseen-${id}`];
  assert.deepEqual(exported.toSorted(), expected.toSorted());

  await cell.flush();
  await connected.end();
  console.log(driver.name);
}
await coordinator.stop();
