import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TypesDocument } from "leasehold/cell";
import { createClient, type Client } from "leasehold/client";
import { startTestCoordinator, type TestCoordinator } from "leasehold/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { applyTypes, readTypes } from "../../../examples/cell/launcher/types.ts";

describe("a types file", () => {
  let folder: string;
  let own: TypesDocument;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "leasehold-example-types-"));
    own = await readTypes();
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const read = (types: TypesDocument): Promise<TypesDocument> => {
    const file = join(folder, "leasehold.types.json");
    writeFileSync(file, JSON.stringify(types));
    return readTypes(file);
  };

  test("may have more types, and other rules and numbers", async () => {
    const types = {
      ...own,
      bucket_types: { ...own.bucket_types, HANDLES: { number: 9, max_length: 12 }, VOUCHERS: { number: 10 } },
    };
    expect(await read(types)).toEqual(types);
  });

  test("that lacks types of the example's tables is refused with a list of them", async () => {
    const { HANDLES: _, ...others } = own.bucket_types;
    const types = { ...own, bucket_types: others, source_types: { TABLES: { number: 1 } } };
    await expect(read(types)).rejects.toThrow(
      "lacks types that the example's tables use: bucket_types.HANDLES, source_types.PEOPLE, ",
    );
  });

  test("that is missing is named", async () => {
    await expect(readTypes(join(folder, "nothing.json"))).rejects.toThrow(/nothing\.json cannot be read/);
  });
});

describe("at the coordinator", () => {
  let coordinator: TestCoordinator;
  let operator: Client;
  let cell: Client;
  let own: TypesDocument;

  beforeAll(async () => {
    coordinator = await startTestCoordinator();
    const { url, fetch, keys } = coordinator;
    operator = createClient({ url, fetch, key: keys.operator });
    cell = createClient({ url, fetch, key: keys.cell("1"), cell: "1" });
    own = await readTypes();
    await applyTypes(operator, own);
  });

  afterAll(() => coordinator.close());

  test("a rule in use can't be changed by the next start", async () => {
    const bucket = { type: "HANDLES", value: "ada" } as const;
    const person = { subject: { type: "PERSON", id: "1" }, source: { type: "PEOPLE", id: "1" } } as const;
    await cell.leases.begin({ creates: [{ bucket, ...person }] });
    await applyTypes(operator, own);
    const types = { ...own, bucket_types: { ...own.bucket_types, HANDLES: { number: 1, case: "exact" } } };
    await expect(applyTypes(operator, types)).rejects.toThrow(
      /the coordinator refuses the types:[^]*Refused: bucket_types\.HANDLES is in use/,
    );
  });

  test("a shipped type is unknown, and doesn't compile", async () => {
    // @ts-expect-error USERNAMES is not one of the example's types.
    const lookup = cell.records.find({ type: "USERNAMES", value: "ada" });
    await expect(lookup).rejects.toThrow(/HANDLES/);
  });
});
