/** `leasehold transfers`: plan, prepare, accept, verify, cut, abort, switch-back, finish, ls and show. */
import { expect, test } from "vitest";
import type { Transfer } from "../../src/users/client/index.ts";
import { create, spoil, startCommandLine, type CommandLine } from "./command-line.ts";

const SCOPE = "9970";
const MOVE = ["--from", "1", "--to", "2", "--scope", SCOPE];
const YES = ["--reason", "a test", "--yes"];

async function claimed(line: CommandLine, ...names: string[]): Promise<void> {
  const { leases } = line.client("1");
  const creates = names.map((name) => ({ ...create(name), scope: SCOPE }));
  await leases.commit((await leases.begin({ creates })).uuid);
}

async function prepared(line: CommandLine): Promise<Transfer> {
  const { transfer } = await line.json(["transfers", "prepare", ...MOVE, ...YES]);
  return transfer as Transfer;
}

async function reported(line: CommandLine, { id, expected }: Transfer): Promise<void> {
  const { from, to } = expected;
  if (from === null || to === null) throw new Error("an operator reads what both cells must report");
  await line.client("1").transfers.report(id, from);
  await line.client("2").transfers.report(id, to);
}

async function ownerOf(line: CommandLine, value: string): Promise<string | undefined> {
  return (await line.client().records.find({ type: "USERNAMES", value }))?.record.cell_id;
}

test("a move from the plan to the switch-back, with the next step after each command", async () => {
  const line = await startCommandLine();
  await claimed(line, "ada", "grace");
  const plan = await line.run(["transfers", "plan", ...MOVE]);
  expect(plan.code).toBe(0);
  expect(plan.out).toMatch(/^RAILS_TABLE_USERS +USERNAMES +2$/m);
  expect(plan.err).toContain("Nothing was changed.");
  expect(plan.err).toContain("Next: leasehold transfers prepare --from 1 --to 2 --scope 9970 --reason TEXT");
  const { id, expected } = await prepared(line);
  expect(expected.from?.count).toBe(2);
  const early = await line.run(["transfers", "cut", id, ...YES]);
  expect(early.code).toBe(3);
  expect(early.err).toContain("cell 2 has not accepted it; cell 1 has not reported its rows");
  const accepted = await line.run(["transfers", "accept", id, ...YES]);
  expect(accepted.err).toContain(`Next: leasehold transfers verify ${id}`);
  const verified = await line.run(["transfers", "verify", id]);
  expect(verified.code).toBe(10);
  expect(verified.err).toContain("Missing: cell 2 has not reported its rows.");
  await reported(line, await line.client().transfers.get(id));
  const ready = await line.run(["transfers", "verify", id]);
  expect(ready).toMatchObject({ code: 0, err: expect.stringContaining("The transfer can be cut.") });
  expect(ready.out).toMatch(/^1 +2 +2 +[\da-f]{32} +[\da-f]{32} +yes/m);
  expect(ready.err).toContain(`Next: leasehold transfers cut ${id} --reason TEXT`);
  const cut = await line.run(["transfers", "cut", id, "--reason", "a test"], { answers: [id] });
  expect(cut.code).toBe(0);
  expect(cut.asked[0]).toContain("2 names belong to cell 2 at once");
  expect(cut.err).toContain(`To undo it: leasehold transfers switch-back ${id} --reason TEXT`);
  expect(await ownerOf(line, "ada")).toBe("2");
  const wait = (ms: number): Promise<void> => line.coordinator.advance(ms);
  const finished = await line.run(["transfers", "finish", id], { wait });
  expect(finished).toMatchObject({ code: 0, out: expect.stringMatching(/^state +FINISHED$/m) });
  const back = (await line.json(["transfers", "switch-back", id, ...YES]))["transfer"] as Transfer;
  expect(back).toMatchObject({ from: "2", to: "1", switch_back_of: id, state: "PREPARED" });
  const list = await line.json(["transfers", "ls", "--to", "1"]);
  expect(list).toMatchObject({ transfers: [{ id: back.id }], cut: false });
  expect((await line.run(["transfers", "show", back.id])).out).toMatch(new RegExp(`^undoes +${id}$`, "m"));
});

test("commands about a held name lead to the transfer", async () => {
  const line = await startCommandLine();
  await claimed(line, "ada");
  const { id } = await prepared(line);
  const step = `Next: leasehold transfers show ${id}`;
  const commands = [
    ["lookup", "ada"],
    ["lookup", "--trace", "--type", "USERNAMES", "ada"],
    ["claims", "show", "ada", "--type", "USERNAMES"],
  ];
  for (const command of commands) {
    const { err } = await line.run(command);
    expect(err).toContain(step);
    expect(err).not.toContain("leases show");
  }
  expect((await line.run(["transfers", "show", id])).code).toBe(0);
});

test("an abort of a transfer that the ledger had lost promises nothing about the names", async () => {
  const line = await startCommandLine();
  await claimed(line, "ada");
  const transfer = await prepared(line);
  const rebuilt = { transfer: { ...transfer, is_rebuilt: true } };
  spoil(line, `/v1/transfers/${transfer.id}`, () => Response.json(rebuilt));
  const { out } = await line.run(["transfers", "abort", transfer.id, "--dry-run"]);
  expect(out).toContain("If it was cut before, names belong to cell 2");
  expect(out).not.toContain("keeps the names");
});

test("cut asks for the id of the transfer, and anything else changes nothing", async () => {
  const line = await startCommandLine();
  await claimed(line, "ada");
  const transfer = await prepared(line);
  await line.run(["transfers", "accept", transfer.id, ...YES]);
  await reported(line, transfer);
  const wrong = await line.run(["transfers", "cut", transfer.id, "--reason", "x"], { answers: ["2"] });
  expect(wrong.code).toBe(2);
  expect(wrong.err).toContain(`"2" is not ${transfer.id}: nothing was changed`);
  const dry = await line.run(["transfers", "cut", transfer.id, "--dry-run"]);
  expect(dry).toMatchObject({ code: 0, out: expect.stringContaining("It would be cut.") });
  expect(await ownerOf(line, "ada")).toBe("1");
});

test("an abort is final, and a repeated one changes nothing", async () => {
  const line = await startCommandLine();
  await claimed(line, "ada");
  const { id } = await prepared(line);
  const aborted = await line.run(["transfers", "abort", id, ...YES]);
  expect(aborted.out).toContain("is aborted. Cell 1 keeps the names");
  expect((await line.run(["transfers", "abort", id, ...YES])).out).toContain("was aborted already");
  for (const step of ["accept", "cut", "switch-back"]) {
    const refused = await line.run(["transfers", step, id, ...YES]);
    expect([step, refused.code]).toEqual([step, 3]);
  }
  expect((await line.run(["transfers", "finish", id])).code).toBe(3);
  expect((await line.run(["transfers", "verify", id])).err).toContain("The transfer is ABORTED.");
});

test("a plan names the leases that are in the way, and a dry run of a prepare holds nothing", async () => {
  const line = await startCommandLine();
  await claimed(line, "ada");
  const { leases } = line.client("1");
  const { uuid } = await leases.begin({ destroys: [{ bucket: { type: "USERNAMES", value: "ada" } }] });
  const plan = await line.run(["transfers", "plan", ...MOVE]);
  expect(plan.err).toContain("In the way: leases of the source hold names of the scope.");
  expect(plan.err).toContain(`Next: leasehold leases show ${uuid} --cell 1`);
  expect((await line.run(["transfers", "prepare", ...MOVE, ...YES])).code).toBe(3);
  await leases.rollback(uuid);
  expect(await line.run(["transfers", "prepare", ...MOVE, "--dry-run"])).toMatchObject({ code: 0 });
  expect(await line.json(["transfers", "ls"])).toMatchObject({ transfers: [] });
});

test("ids of another form are refused before anything is sent, and 4 for an unknown transfer", async () => {
  const line = await startCommandLine();
  for (const id of ["7", "x-0198c5a0-5f6e-7000-8000-000000000001", "7-x"])
    expect((await line.run(["transfers", "show", id])).code).toBe(2);
  expect(line.sent).toEqual([]);
  const unknown = "2-0198c5a0-5f6e-7000-8000-000000000001";
  expect((await line.run(["transfers", "show", unknown])).code).toBe(4);
  expect((await line.run(["transfers", "finish", unknown])).code).toBe(4);
});
