/** `leasehold parts`: show, reconcile and finish. */
import { expect, test } from "vitest";
import { claim, spoil, startCommandLine } from "../command-line.ts";

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
const nothingLost = { lost_leases: [], rebuilt_leases: [], unreachable: [] };
const because = ["--reason", "restored from a backup"];

test("show: what was noticed, and what to do", async () => {
  const line = await startCommandLine();
  expect(await line.run(["parts", "show", "shard-0"])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^shard-0 is complete\. Its newest point: /),
    err: "",
  });
  expect((await line.run(["parts", "show", "shard-99"])).code).toBe(4);
  expect((await line.run(["parts", "show", "shelf-1"])).code).toBe(2);
  spoil(line, "/v1/admin/parts/shard-3", () => Response.json({ part: lost }));
  const { out, err } = await line.run(["parts", "show", "shard-3"]);
  expect(out).toBe(
    "shard-3 is lost. Its newest point: position 41 of incarnation 17.\n" +
      "2026-11-20T12:00:00.000Z: the ledger of cell 7 had seen position 99 of incarnation 17.\n" +
      "What was left then: position 41 of incarnation 17.\n",
  );
  expect(err).toBe("Next: leasehold parts reconcile shard-3 --dry-run\n");
});

test("[H6] reconcile: a dry run changes nothing, and a declared loss needs the typed name", async () => {
  const line = await startCommandLine();
  await claim(line, "1", "ada");
  const reconcile = ["parts", "reconcile", "shard-0", "--declare-lost"];
  const dry = await line.run([...reconcile, "--dry-run"]);
  expect(dry.out).toMatch(/^shard-0 is complete\./);
  expect(dry.err).toBe(
    "Nothing was changed.\nNext: leasehold parts reconcile shard-0 --declare-lost --reason TEXT\n",
  );
  const mistyped = await line.run([...reconcile, ...because], { answers: ["shard-1"] });
  expect(mistyped.code).toBe(2);
  expect(mistyped.asked[0]).toContain("The part stops at once, as if it had noticed the loss.");
  expect((await line.run(["parts", "show", "shard-0"])).out).toMatch(/^shard-0 is complete\./);

  const done = await line.run([...reconcile, ...because], { answers: ["shard-0"] });
  expect(done.out).toMatch(/^shard-0 is reconciling\.[^]+: an operator declared a loss\./);
  expect(done.err).toContain("Let every cell verify twice without changes, then finish the shard.");
  expect(done.err).toContain("Next: leasehold parts finish shard-0 --reason TEXT");
  const { out } = await line.run(["parts", "finish", "shard-0", "--dry-run"]);
  expect(out).toContain("Would take shard-0 back into service");
  await line.coordinator.cron();
  expect(await line.json(["audit", "--action", "reconcile_part"])).toMatchObject({
    entries: [{ target: "shard-0", reason: "restored from a backup" }],
  });
});

test("[H6] reconcile: a ledger is complete at once", async () => {
  const line = await startCommandLine();
  await claim(line, "1", "ada");
  const reconcile = ["parts", "reconcile", "ledger-1", "--declare-lost", "--yes", ...because];
  const { code, out } = await line.run(reconcile);
  expect(code).toBe(0);
  expect(out).toMatch(/^ledger-1 is complete\.[^]+The cell is ACTIVE\. Freeze it again if/);
});

test("reconcile says what would be and what was done", async () => {
  const line = await startCommandLine();
  const done = {
    lost_leases: [{ cell_id: "7", outstanding: 1, decided: 58, leases: ["the-lease"] }],
    rebuilt_leases: [{ shard: 2, holds: 5, leases: 2 }],
    unreachable: ["ledger-9"],
  };
  spoil(line, "/v1/admin/parts/shard-3/reconcile", () =>
    Response.json({ ...done, part: lost, dry_run: true }),
  );
  expect((await line.run(["parts", "reconcile", "shard-3", "--dry-run"])).out).toContain(
    "Cell 7: 58 decided leases and 1 open ones are lost, among them the-lease.\n" +
      "shard-2: 2 leases would be granted again, from 5 holds.\n" +
      "Could not be asked: ledger-9.\n",
  );
  const restored = { cells: ["3", "8"], keys: 5, revocations: 2, types: ["HANDLES", "PEOPLE"] };
  const directory = { id: "directory", state: "complete", point, loss: null };
  spoil(line, "/v1/admin/parts/directory/reconcile", () =>
    Response.json({ ...nothingLost, part: directory, dry_run: false, restored }),
  );
  expect((await line.run(["parts", "reconcile", "directory", ...because, "--yes"])).out).toContain(
    "2 cells (3, 8), 5 keys, 2 revocations and 2 types (HANDLES, PEOPLE) were restored.",
  );
});

test("an unknown outcome is not taken for a failure", async () => {
  const line = await startCommandLine();
  spoil(line, "/v1/admin/parts/shard-0/reconcile", () => {
    throw new TypeError("the connection broke");
  });
  const { code, err } = await line.run(["parts", "reconcile", "shard-0", ...because, "--yes"]);
  expect(code).toBe(6);
  expect(err).toContain("It may have been done: look at the part before you repeat it");
  expect(err).toContain("Next: leasehold parts show shard-0");
});

test("finish takes the part back into service", async () => {
  const line = await startCommandLine();
  spoil(line, "/v1/admin/parts/shard-3/finish", () =>
    Response.json({ part: { ...lost, state: "complete", loss: null } }),
  );
  const { out } = await line.run(["parts", "finish", "shard-3", ...because], { answers: ["shard-3"] });
  expect(out).toMatch(/^shard-3 is complete\./);
});
