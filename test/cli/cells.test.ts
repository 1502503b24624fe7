/** `leasehold cells`. */
import { describe, expect, test } from "vitest";
import { startCommandLine } from "./command-line.ts";

const reason = ["--reason", "a test"];

test("ls and show", async () => {
  const line = await startCommandLine({ cells: ["1", "2", "3"] });
  const list = await line.run(["cells", "ls", "--limit", "2"]);
  expect(list.out).toMatch(/^2 +cell-2 +ACTIVE +https:\/\/cell-2\.test/m);
  expect(list.err).toContain("The list was cut after 2");
  expect(await line.json(["cells", "show", "3"])).toMatchObject({ cell: { cell_id: "3", state: "ACTIVE" } });
  const missing = await line.run(["cells", "show", "4"]);
  expect(missing).toMatchObject({ code: 4, out: "", err: expect.stringContaining("there is no cell 4") });
});

test("add registers a cell, and a cell that exists is a conflict", async () => {
  const line = await startCommandLine();
  const add = ["cells", "add", "7", "--name", "europe", "--address", "https://eu.example"];
  expect((await line.run([...add, "--dry-run"])).err).toContain("Nothing was changed.");
  expect(line.sent).toEqual([]);
  const { code, err } = await line.run(add);
  expect(code).toBe(0);
  expect(err).toContain("Next: leasehold keys mint --role cell --cell 7 --note europe");
  expect((await line.run(add)).code).toBe(3);
});

test("set changes the address, and prints the command that undoes it", async () => {
  const line = await startCommandLine();
  const set = ["cells", "set", "1", "--address", "https://new.example", ...reason];
  expect((await line.run(["cells", "set", "1", ...reason, "--yes"])).code).toBe(2);
  const { code, out, err } = await line.run(set, { answers: ["1"] });
  expect({ code, out }).toEqual({
    code: 0,
    out: "Changed cell 1: address https://cell-1.test -> https://new.example\n",
  });
  const [, undo = ""] = /^To undo it: leasehold (.+) --reason TEXT$/m.exec(err) ?? [];
  expect((await line.run([...undo.split(" "), ...reason, "--yes"])).code).toBe(0);
  expect(await line.json(["cells", "show", "1"])).toMatchObject({ cell: { address: "https://cell-1.test" } });
});

describe.each([
  ["freeze", "FROZEN", "thaw"],
  ["thaw", "ACTIVE", "freeze"],
  ["drain", "DRAINING", "undrain"],
  ["undrain", "ACTIVE", "drain"],
])("%s", (command, state, undo) => {
  test("sends nothing without a reason and the id of the cell, then changes the state", async () => {
    const line = await startCommandLine();
    if (command === "thaw") await line.client().cells.freeze("2");
    if (command === "undrain") await line.client().cells.drain("2");
    const args = ["cells", command, "2"];
    expect((await line.run([...args, "--yes"])).code).toBe(2);
    expect(line.sent).toEqual([]);
    expect((await line.run([...args, ...reason], { answers: ["1"] })).code).toBe(2);
    expect((await line.run([...args, "--dry-run"])).out).toContain(`would be ${state}`);
    expect(line.changes).toEqual([]);
    const done = await line.run([...args, ...reason], { answers: ["2"] });
    expect(done).toMatchObject({
      code: 0,
      err: expect.stringContaining(`To undo it: leasehold cells ${undo} 2 --reason TEXT`),
    });
    expect(await line.json(["cells", "show", "2"])).toMatchObject({ cell: { state } });
    line.sent.length = 0;
    expect((await line.run([...args, ...reason, "--yes"])).out).toContain("Nothing was changed.");
    expect(line.changes).toEqual([]);
  });
});

test("undrain does not thaw a frozen cell", async () => {
  const line = await startCommandLine();
  await line.client().cells.freeze("2");
  const { code, err } = await line.run(["cells", "undrain", "2", ...reason, "--yes"]);
  expect(code).toBe(3);
  expect(err).toContain("cell 2 is FROZEN, not DRAINING: nothing was changed");
  expect(err).toContain("leasehold cells thaw 2 --reason TEXT");
});
