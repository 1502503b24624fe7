/** `npm start -- --types` as a process. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import { leaseId, Server } from "../hosts/workerd/server.ts";

const folder = mkdtempSync(join(tmpdir(), "leasehold-types-"));
const servers: Server[] = [];

const people = { subject_types: { PERSON: { number: 1 } }, source_types: { PEOPLE: { number: 1 } } };
const set = (bucketTypes: object) => ({ bucket_types: bucketTypes, ...people });
const HANDLES = { number: 1, max_length: 30 };

async function start(types: object): Promise<Server> {
  const file = join(folder, "types.json");
  writeFileSync(file, JSON.stringify(types));
  const server = new Server(await freePort(), join(folder, "state"), {}, ["--types", file]);
  servers.push(server);
  return server;
}

afterAll(async () => {
  await Promise.all(servers.map((each) => each.end("SIGKILL")));
  rmSync(folder, { recursive: true, force: true });
});

test("[T3] `npm start` ends if the rule of a type in use would change, and the state is kept", async () => {
  const server = await start(set({ HANDLES }));
  // It answers before it has declared the types.
  await expect.poll(() => server.stdout + server.stderr).toContain("is ready at");
  const key = server.keys.cells["1"] ?? "";
  const begun = await server.call(key, "PUT", `/v1/cells/1/leases/${leaseId(1)}`, {
    creates: [
      {
        bucket: { type: "HANDLES", value: "ada" },
        subject: { type: "PERSON", id: 1 },
        source: { type: "PEOPLE", id: 1 },
      },
    ],
  });
  expect(begun.status).toBe(201);
  await server.end("SIGTERM");
  expect((await (await start(set({ HANDLES: { ...HANDLES, case: "exact" } }))).ended).stderr).toContain(
    "bucket_types.HANDLES is in use, so its canonical rule must not change",
  );
  const again = await start(set({ HANDLES }));
  await expect.poll(() => again.stdout + again.stderr).toContain("is ready at");
  const { body } = await again.call(again.keys.operator, "GET", "/v1/admin/types");
  expect(body).toHaveProperty("types.bucket_types.HANDLES.case", "folded");
});
