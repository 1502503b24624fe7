/** `leasehold webhooks`. */
import { expect, test } from "vitest";
import type { Webhook } from "../../src/users/client/api-types.ts";
import { startCommandLine, type CommandLine, type Ran, type RunOptions } from "./command-line.ts";

/** Its path is a secret, as with Slack. Nobody answers there. */
const ADDRESS = "http://127.0.0.1:1/services/hidden";
const input = `${ADDRESS}\n`;
const ADD = ["webhooks", "add"];

const start = (): Promise<CommandLine> => startCommandLine({ variables: { LEASEHOLD_WEBHOOK_HOSTS: "any" } });

async function add(line: CommandLine, more: readonly string[] = []): Promise<Webhook> {
  const { webhook } = await line.json([...ADD, ...more], { input });
  return webhook as Webhook;
}

const shown = ({ out, err, asked }: Ran): string => out + err + asked.join("");

test("add prints the secret alone, and the address is read where nothing shows it", async () => {
  const line = await start();
  expect((await line.run(ADD)).err).toContain("no address was given");
  expect((await line.run(ADD, { input: "hooks.example.com" })).code).toBe(2);
  const dry = await line.run([...ADD, "--dry-run"], { input });
  expect([dry.out, dry.err.includes("Would add a webhook to http://127.0.0.1:1.")]).toEqual(["", true]);
  expect(line.sent).toEqual([]);
  const settings = [
    "--events",
    "cell_silent,credential_expiring",
    "--thresholds",
    "cell_silent=30",
    "--for",
    "0s",
  ];
  const added = await line.run([...ADD, ...settings, "--disabled", "--reason", "x"], { answers: [ADDRESS] });
  expect(added.out).toMatch(/^whsec_[\w+/=]+\n$/);
  expect(added.asked).toEqual(["Address of the webhook: "]);
  expect(added.err).not.toContain("whsec_");
  expect(shown(dry) + shown(added)).not.toContain("hidden");
  const { webhooks } = await line.json(["webhooks", "ls"]);
  expect(webhooks).toMatchObject([
    {
      url: ADDRESS,
      events: ["cell_silent", "credential_expiring"],
      thresholds: { cell_silent: 30 },
      for_s: 0,
      resolve_s: 300,
      enabled: false,
    },
  ]);
  expect(JSON.stringify(webhooks)).not.toContain("whsec_");
});

test.each([
  ["--events", "stale_leases,nothing"],
  ["--events", "cell_drift,cell_drift"],
  ["--thresholds", "cron_failed=1"],
  ["--thresholds", "cell_drift=many"],
  ["--for", "2d"],
])("add %s %s: 2, and nothing is sent", async (...setting) => {
  const line = await start();
  expect((await line.run([...ADD, ...setting], { input })).code).toBe(2);
  expect(line.sent).toEqual([]);
});

test("test fails if the receiver does, and ls and deliveries show why", async () => {
  const line = await start();
  const { id } = await add(line);
  const tested = await line.run(["webhooks", "test", id, "--reason", "new"]);
  expect(tested).toMatchObject({ code: 1, out: expect.stringContaining("was not delivered: no connection") });
  expect(tested.err).toContain(`Next: leasehold webhooks deliveries ${id}`);
  const ls = await line.run(["webhooks", "ls"]);
  expect(ls.out).toMatch(/^ID +ADDRESS +STATE/);
  expect(ls.out).toMatch(new RegExp(`${id} +http://127.0.0.1:1 +OK`));
  expect(shown(ls)).not.toContain("hidden");
  const lines = (await line.run(["webhooks", "deliveries", id, "--jsonl"])).out.trimEnd().split("\n");
  expect(lines.map((text) => JSON.parse(text) as object)).toMatchObject([
    { event: "test", state: "given_up", attempts: 1, last_error: "no connection, or it broke off" },
  ]);
  await line.run(["webhooks", "test", id]);
  const cut = await line.json(["webhooks", "deliveries", id, "--limit", "1"]);
  expect(cut).toMatchObject({ cut: true, next_steps: [`leasehold webhooks test ${id}`] });
  expect((await line.run(["webhooks", "deliveries", "nothing"])).code).toBe(4);
});

test("set shows what changes, and how to undo it", async () => {
  const line = await start();
  const before = await add(line, ["--thresholds", "cell_drift=3"]);
  const set = ["webhooks", "set", before.id];
  line.sent.length = 0;
  expect((await line.run([...set, "--reason", "x", "--yes"])).err).toContain("give a setting to change");
  expect(line.sent).toEqual([]);
  const reasoned = [...set, "--reason", "x", "--yes"];
  expect((await line.run([...reasoned, "--for", "5m", "--enable"])).out).toContain("Nothing was changed.");
  const changes = ["--thresholds", "cell_drift=default,stale_leases=9", "--for", "1m", "--disable"];
  expect((await line.run([...set, ...changes, "--dry-run"])).out).toContain(
    "thresholds cell_drift=3 -> stale_leases=9; for 300s -> 60s; enabled true -> false",
  );
  const typed = await line.run([...set, ...changes, "--reason", "x"], { answers: ["wrong"] });
  expect([typed.code, line.changes]).toEqual([2, []]);
  const { undo, webhook } = await line.json([...reasoned, ...changes]);
  expect(webhook).toMatchObject({ thresholds: { stale_leases: 9 }, for_s: 60, enabled: false });
  expect(undo).toBe(
    `leasehold webhooks set ${before.id} --thresholds cell_drift=3,stale_leases=default --for 300s ` +
      "--enable --reason TEXT",
  );
  const undone = await line.json([...String(undo).split(" ").slice(1, -1), "x", "--yes"]);
  expect(undone["webhook"]).toMatchObject({
    thresholds: before.thresholds,
    for_s: before.for_s,
    enabled: true,
  });
  const other: RunOptions = { input: "http://127.0.0.1:1/services/hidden-too" };
  const moved = await line.run([...reasoned, "--address"], other);
  expect(moved).toMatchObject({ code: 0, err: expect.stringContaining("with the old address as its input") });
  expect(shown(moved)).not.toContain("hidden");
  expect(await line.json(["webhooks", "ls"])).toMatchObject({ webhooks: [{ url: other.input }] });
});

test("rm needs a reason and the end of the id, and no address gets into a URL", async () => {
  const line = await start();
  const { id } = await add(line);
  line.sent.length = 0;
  const remove = ["webhooks", "rm", id];
  expect((await line.run([...remove, "--yes"])).code).toBe(2);
  const wrong = await line.run(["webhooks", "rm", ADDRESS, "--reason", "x", "--yes"]);
  expect([wrong.code, shown(wrong).includes("hidden")]).toEqual([2, false]);
  expect(line.sent).toEqual([]);
  expect((await line.run([...remove, "--dry-run"])).out).toContain(`Would remove webhook ${id}`);
  expect((await line.run([...remove, "--reason", "x"], { answers: ["no"] })).code).toBe(2);
  expect(line.changes).toEqual([]);
  const removed = await line.run([...remove, "--reason", "x"], { answers: [id.slice(-8)] });
  expect(removed).toMatchObject({ code: 0, out: expect.stringContaining(`Removed webhook ${id}`) });
  expect((await line.run([...remove, "--reason", "x", "--yes"])).code).toBe(4);
  expect((await line.run(["webhooks", "ls"])).err).toContain("There are no webhooks.");
});
