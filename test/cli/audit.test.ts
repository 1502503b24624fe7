/** `leasehold audit`: what the other commands leave behind. */
import { expect, test } from "vitest";
import { auditActions } from "../../src/coordinator/capabilities/audit/audit.ts";
import { create, startCommandLine, type CommandLine } from "./command-line.ts";

interface Entry {
  action: string;
  target: string;
  reason: string | null;
  cell_id: string | null;
}

async function audit(line: CommandLine, ...args: string[]): Promise<Entry[]> {
  await line.coordinator.cron();
  return (await line.json(["audit", ...args]))["entries"] as Entry[];
}

test("the reasons of changes are kept", async () => {
  const line = await startCommandLine();
  const { uuid } = await line.client("1").leases.begin({ creates: [create("ada")] });
  const why = ["--yes", "--reason"];
  await line.run(["cells", "set", "2", "--address", "https://new.example", ...why, "moved"]);
  await line.run(["cells", "freeze", "2", ...why, "it moves away"]);
  await line.run(["leases", "rollback", uuid, "--cell", "1", ...why, "cell 1 is gone"]);
  await line.run(["keys", "mint", "--role", "router", "--reason", "a new router"]);
  const { credentials } = await line.json(["keys", "ls", "--role", "router"]);
  const [minted] = credentials as { id: string }[];
  await line.run(["keys", "revoke", minted?.id ?? "", ...why, "leaked"]);
  const entries = await audit(line, "--since", "1h");
  expect(entries.map(({ action, target, reason }) => [action, target, reason])).toEqual(
    expect.arrayContaining([
      ["change_cell", "2", "moved"],
      ["freeze_cell", "2", "it moves away"],
      ["rollback_lease", uuid, "cell 1 is gone"],
      ["mint_key", minted?.id, "a new router"],
      ["revoke_key", minted?.id, "leaked"],
    ]),
  );
  const ofKey = await audit(line, "--target", minted?.id ?? "");
  expect(ofKey.map(({ action }) => action).toSorted()).toEqual(["mint_key", "revoke_key"]);
  expect((await audit(line, "--action", "change_cell")).map(({ reason }) => reason)).toEqual(["moved"]);
});

test("the revocation of a cell's key is one change, of the ledger and the directory", async () => {
  const line = await startCommandLine();
  const operator = await line.client().keys.mint({ role: "operator", note: "Ada's key" });
  const { id } = await line.client().keys.mint({ role: "cell", cell_id: "1" });
  const revoke = ["keys", "revoke", id, "--reason", "leaked", "--yes"];
  expect((await line.run(revoke, { env: { LEASEHOLD_KEY: operator.key } })).code).toBe(0);
  const entries = await audit(line, "--target", id, "--action", "revoke_key");
  expect(entries).toMatchObject([
    { parts: ["directory", "ledger-1"], before: { role: "cell", is_revoked: false }, reason: "leaked" },
  ]);
  const { out } = await line.run(["audit", "--target", id, "--action", "revoke_key"]);
  expect(out).toMatch(new RegExp(` revoke_key +${id} +1 +${operator.id} +Ada's key +leaked$`, "m"));
  expect(out.trimEnd().split("\n")).toHaveLength(2);
});

test("lists as a table, says up to when it is complete, and when it was cut", async () => {
  const line = await startCommandLine({ cells: ["1", "2", "3"] });
  const before = await line.run(["audit"]);
  expect(before).toMatchObject({ code: 0, out: "" });
  expect(before.err).toContain("No run has copied everything yet, so changes may be missing.");
  await line.coordinator.cron();
  const { code, out, err } = await line.run(["audit", "--limit", "2"]);
  expect(code).toBe(0);
  expect(out.trimEnd().split("\n")).toHaveLength(3);
  expect(out).toMatch(/ +add_cell +3 +3 +/);
  const { complete_through: through } = await line.json(["audit"]);
  expect(err).toContain(
    "This list is read from a copy that the cron makes once a minute. " +
      `It has all changes before ${String(through)}. Later ones are missing until the next run.\n`,
  );
  expect(err).toContain("The list was cut after 2");
  expect(await line.run(["audit", "--cell", "9"])).toMatchObject({ code: 0, out: "" });
  expect((await line.run(["audit", "--action", "nothing"])).code).toBe(2);
});

test("finds every kind of change", async () => {
  const line = await startCommandLine();
  for (const action of auditActions)
    expect([action, (await line.run(["audit", "--action", action])).code]).toEqual([action, 0]);
});
