/** `leasehold scrub`: what was found, a whole pass, and parts that don't answer. */
import { expect, test } from "vitest";
import { claim, spoil, startCommandLine } from "./command-line.ts";

test("shows all parts, and scrubs them with --run", async () => {
  const line = await startCommandLine();
  await claim(line, "1", "ada");
  const before = await line.run(["scrub", "shard-0", "ledger-1"]);
  expect(before).toMatchObject({ code: 0, out: expect.stringMatching(/shard-0 +complete +never/) as string });
  const { code, out, err } = await line.run(["scrub", "--run"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/shard-0 +complete +20\S+Z +\d+ +0 +0/);
  expect(out).toContain("ledger-1");
  const { found, parts } = (await line.json(["scrub"])) as { found: number; parts: { part: string }[] };
  expect(found).toBe(0);
  expect(parts.map(({ part }) => part)).toContain("ledger-1");
  expect((await line.run(["scrub", "shard-99"])).code).toBe(4);
  expect((await line.run(["scrub", "directory"])).code).toBe(2);
});

test("a finding has a line with its name, and exit code 1", async () => {
  const line = await startCommandLine();
  const finding = {
    kind: "wrong_digest",
    table: "claims",
    found_at: "2026-11-27T12:01:00.000Z",
    bucket: { type: "USERNAMES", canonical: "a\u001bda" },
    cell_id: "7",
    lease_uuid: null,
    epoch: 12,
    missing: null,
  };
  const last = {
    number: 1,
    started_at: "2026-11-27T12:00:00.000Z",
    ended_at: "2026-11-27T12:04:00.000Z",
    table: null,
    rows: 3,
    found: 21,
    findings: [finding],
    cleared_holds: 0,
    unchecked: 0,
  };
  spoil(line, "/v1/admin/parts/shard-3/scrub", () =>
    Response.json({ part: "shard-3", state: "complete", running: null, last }),
  );
  const { code, out, err } = await line.run(["scrub", "shard-3"]);
  expect(code).toBe(1);
  expect(out).toContain('shard-3: wrong_digest in claims: USERNAMES "a\\u001bda" of cell 7\n');
  expect(err).toBe("20 more findings are only counted.\nNext: leasehold scrub shard-3 --run\n");
});
