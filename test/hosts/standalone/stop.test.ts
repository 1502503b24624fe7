/** A stop in the middle of work. */
import { expect, test } from "vitest";
import { v4 as newUuid } from "uuid";
import { realDisk, type Disk } from "../../../src/hosts/standalone/disk.ts";
import { serveFiles, type Served } from "./served.ts";

const turn = (): Promise<void> => new Promise((resume) => void setImmediate(resume));

function call({ host, keys }: Served, method: string, path: string, body: object): Promise<number> {
  const key = path.startsWith("/v1/cells/") ? keys.cell("1") : keys.operator;
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return host.dispatch(request).then(async (answer) => {
    await answer.text();
    return answer.status;
  });
}

/** A disk that takes some turns, so that a stop may come between them. */
const slowDisk: Disk = {
  ...realDisk,
  syncFile: async (fd) => {
    for (let n = 0; n < 8; n += 1) await turn();
    await realDisk.syncFile(fd);
  },
};

const batch = (value: string): object => ({
  creates: [
    {
      bucket: { type: "ROUTES", value },
      subject: { type: "USER", id: 1 },
      source: { type: "RAILS_TABLE_USERS", id: 1 },
    },
  ],
});

test("[B5] a stop at any moment of a begin writes nothing after it, and fails no sync", async () => {
  // The first stop comes before the begins have done anything, and the last one after their end.
  for (let turns = 0, isLast = false; !isLast; turns += 6) {
    const served = await serveFiles(["1"], {}, slowDisk);
    const cell = { cell_id: "1", name: "cell-1", address: "https://cell-1.test" };
    expect(await call(served, "POST", "/v1/admin/cells", cell)).toBe(201);
    const calls = [0, 1, 2, 3].map((n) =>
      call(served, "PUT", `/v1/cells/1/leases/${newUuid()}`, batch(`n${n}`)),
    );
    for (let n = 0; n < turns; n += 1) await turn();
    await served.close();
    const statuses = await Promise.all(calls);
    expect(new Set([201, 503, ...statuses])).toEqual(new Set([201, 503]));
    isLast = statuses.every((status) => status === 201);
    // What is still under way may try to go on now.
    for (let n = 0; n < 20; n += 1) await turn();
    expect(served.failures).toEqual([]);
  }
});

test("[B5] after the end of a host, nothing is written, by nobody", async () => {
  const served = await serveFiles(["1"], {});
  const { host, storage } = served;
  const cell = { cell_id: "1", name: "cell-1", address: "https://cell-1.test" };
  expect(await call(served, "POST", "/v1/admin/cells", cell)).toBe(201);
  expect(await call(served, "PUT", `/v1/cells/1/leases/${newUuid()}`, batch("before"))).toBe(201);
  host.end();
  await storage.settle();
  const writes = (): unknown[] => [
    storage.isDurable,
    ...storage.projection.all("SELECT total_changes() AS n"),
  ];
  const before = writes();
  expect(await call(served, "PUT", `/v1/cells/1/leases/${newUuid()}`, batch("after"))).toBe(503);
  expect(await call(served, "POST", "/v1/admin/cells", { ...cell, cell_id: "2" })).toBe(503);
  expect((await host.cron()).error).not.toBeNull();
  expect(writes()).toEqual(before);
  await served.close();
  expect(served.failures).toEqual([]);
});
