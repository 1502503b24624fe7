/** `leasehold upgrade` with a made-up next version, whose format is not in force yet. */
import { expect, test, vi } from "vitest";
import { startCommandLine, type CommandLine } from "../cli/command-line.ts";
import { runVersion } from "./next-formats.ts";

vi.mock("../../src/coordinator/kernel/formats.ts", async (original) => {
  const { formats } = await import("./next-formats.ts");
  return Object.defineProperties(
    { ...(await original<object>()) },
    Object.getOwnPropertyDescriptors(formats),
  );
});

const FINISH = ["upgrade", "finish", "--yes", "--reason", "a quiet day"];

/** Starts a deployment of the version before, and runs the next one on it. */
async function startUpgrade(): Promise<CommandLine> {
  runVersion(1);
  const line = await startCommandLine();
  runVersion(2);
  await line.coordinator.restart();
  return line;
}

const upgradeOf = (line: CommandLine) => line.json(["upgrade"]);
const has = (text: string) => expect.stringContaining(text) as string;

test("an upgrade is shown, tried, finished, and left alone when it is repeated", async () => {
  const line = await startUpgrade();
  const shown = await line.run(["upgrade"]);
  expect(shown).toMatchObject({ code: 0, err: has("leasehold upgrade finish --reason TEXT") });
  expect(shown.out).toMatch(
    /^format in force +1\nnewest format +2\nwaiting features +a cell can be renamed$/m,
  );
  expect((await line.run(["status"])).out).toMatch(
    /^format +1, and 2 waits for `leasehold upgrade finish`; off until then: a cell can be renamed$/m,
  );
  expect(await line.run(["upgrade", "finish", "--dry-run"])).toMatchObject({
    code: 0,
    out: has("Would put format 2 in force, in place of 1."),
  });
  expect(line.changes).toEqual([]);
  expect(
    await line.run(
      FINISH.filter((word) => word !== "--yes"),
      { answers: ["1"] },
    ),
  ).toMatchObject({
    code: 2,
    err: has('"1" is not 2: nothing was changed'),
  });
  expect(await line.run(FINISH)).toMatchObject({ code: 0, out: has("Format 2 is in force.") });
  expect(await upgradeOf(line)).toMatchObject({ format: 2, is_finished: true, waiting_features: [] });
  expect((await line.run(["status"])).out).toMatch(/^format +2$/m);
  expect(await line.run(FINISH)).toMatchObject({ code: 0, out: has("The upgrade is finished already.") });
  await line.coordinator.cron();
  expect((await line.run(["audit", "--action", "finish_upgrade"])).out).toContain("a quiet day");
});

test("what keeps an upgrade from its end is named, with the command that helps", async () => {
  const line = await startUpgrade();
  const blockers = [
    { part: "d1", cause: "MISSING_MIGRATION", detail: "it lacks the migration 0001_more.sql" },
  ];
  const upgrade = { ...(await upgradeOf(line)), blockers };
  const { fetch } = line.coordinator;
  vi.spyOn(line.coordinator, "fetch").mockImplementation((url, init) =>
    (url as string).endsWith("/v1/admin/upgrade")
      ? Promise.resolve(Response.json({ upgrade }))
      : fetch(url, init),
  );
  const shown = await line.run(["upgrade"]);
  expect(shown.out).toMatch(/^d1 +MISSING_MIGRATION +it lacks the migration 0001_more\.sql$/m);
  expect(shown.err).toContain("npx wrangler d1 migrations apply leasehold --remote");
  expect((await line.run(["status"])).out).toMatch(/^format +1, and 2 waits for 1 part;/m);
  expect(await line.run([...FINISH, "--dry-run"])).toMatchObject({
    code: 3,
    err: has("nothing was changed\n- d1: it lacks the migration 0001_more.sql"),
  });
  expect(line.changes).toEqual([]);
});
