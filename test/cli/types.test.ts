/** `leasehold types`, against a real coordinator. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { TypesDocument } from "../../src/common/types/document.ts";
import { startCommandLine, type CommandLine, type Ran } from "./command-line.ts";

const set = (bucketTypes: TypesDocument["bucket_types"]): TypesDocument => ({
  bucket_types: bucketTypes,
  subject_types: { PERSON: { number: 1 } },
  source_types: { PEOPLE: { number: 1 } },
});
const HANDLES = { number: 1, max_length: 30 };

let line: CommandLine;

beforeEach(async () => {
  line = await startCommandLine({ types: set({ HANDLES }) });
});

function fileOf(content: object | string): string {
  const file = join(line.home, "types.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

const plan = (file: string): Promise<Ran> => line.run(["types", "plan", "--file", file]);
const apply = (file: string): Promise<Ran> =>
  line.run(["types", "apply", "--file", file, "--yes", "--reason", "a test"]);
const shown = async (): Promise<unknown> => JSON.parse((await line.run(["types", "show"])).out) as unknown;

test("plans, then applies, and shows the set", async () => {
  const wanted = fileOf({ $schema: "./types.schema.json", ...set({ HANDLES, STORES: { number: 2 } }) });
  const added = '+ bucket_types.STORES {"number":2,"form":"plain","script":"single","case":"folded"}';
  expect(await plan(wanted)).toMatchObject({ code: 10, out: `${added}\n` });
  expect(await shown()).not.toHaveProperty("bucket_types.STORES");
  expect((await apply(wanted)).out).toBe(`${added}\nThe types are declared.\n`);
  expect(await shown()).toHaveProperty("bucket_types.STORES.number", 2);
  expect(await apply(wanted)).toMatchObject({
    code: 0,
    out: "The deployment has these types already.\n",
  });
});

test.each([
  [
    "a name that the file has twice",
    '{"bucket_types":{"A":{"number":1},"A":{"number":2}}}',
    "`bucket_types.A` is given twice; give it once",
  ],
  [
    "a number that two types have",
    set({ A: { number: 1 }, B: { number: 1 } }),
    "`bucket_types.B.number` is 1, which A has already",
  ],
  ["`__proto__`", '{"bucket_types":{"__proto__":{"number":1}}}', "`bucket_types.__proto__` is not a known"],
  ["text that is not JSON", "{", "is not JSON: Expected property name"],
])("refuses %s, and changes nothing", async (_, content, message) => {
  const before = await shown();
  const { code, err } = await apply(fileOf(content));
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) as unknown });
  expect(await shown()).toEqual(before);
});

test("[T3] a file cannot change the rule of a type that is in use", async () => {
  const { url, fetch, keys } = line.coordinator;
  const begun = await fetch(`${url}/v1/cells/1/leases/00000000-0000-4000-8000-000000000001`, {
    method: "PUT",
    headers: { authorization: `Bearer ${keys.cell("1")}`, "content-type": "application/json" },
    body: JSON.stringify({
      creates: [
        {
          bucket: { type: "HANDLES", value: "ada" },
          subject: { type: "PERSON", id: 1 },
          source: { type: "PEOPLE", id: 1 },
        },
      ],
    }),
  });
  expect(begun.status).toBe(201);
  const exact = fileOf(set({ HANDLES: { ...HANDLES, case: "exact" } }));
  for (const { code, out } of [await plan(exact), await apply(exact)])
    expect({ code, out }).toEqual({
      code: 3,
      out: expect.stringContaining(
        "Refused: bucket_types.HANDLES is in use, so its canonical rule must not change",
      ) as unknown,
    });
  expect((await line.run(["types", "show"])).err).toContain("In use, so unchangeable: bucket_types.HANDLES");
  expect(await shown()).toHaveProperty("bucket_types.HANDLES.case", "folded");
});
