/** The example with its embedded databases, without a browser. cell.deep.test.ts tests its pages in one. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { ExampleProcess } from "./example-process.ts";
import { requestTests } from "./requests.ts";

let example: ExampleProcess;

beforeAll(async () => {
  example = await new ExampleProcess().ready();
});

afterAll(async () => {
  await example.end();
  example.removeFolder();
});

test("a sign-up works, a taken name is refused, and a crash is recovered", async () => {
  expect((await example.signUp("1", "grace")).status).toBe(303);
  expect((await example.signUp("2", "Grace")).status).toBe(422);
  const profile = await fetch(`${example.url}/grace`);
  expect([profile.status, profile.headers.get("leasehold-cell")]).toEqual([200, "1"]);
  const away = await example.signUp("1", "saved", "after_commit");
  expect([away.status, away.headers.get("retry-after")]).toEqual([503, "1"]);
  await eventually(async () => (await fetch(`${example.url}/saved`)).status).toBe(200);
});

requestTests(() => example);

test("Ctrl-C removes all files, and no line of output contains a key", async () => {
  const { operator, router, cells } = example.keys;
  expect(await example.end()).toBe(0);
  expect(example.left().filter((name) => name.startsWith("leasehold"))).toEqual([]);
  for (const key of [operator, router, ...Object.values(cells)]) expect(example.output).not.toContain(key);
});
