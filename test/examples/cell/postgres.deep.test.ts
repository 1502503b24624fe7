/** Tests the example on PostgreSQL databases. cell.deep.test.ts tests its pages. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { eventually } from "./eventually.ts";
import { ExampleProcess } from "./example-process.ts";

describe.skipIf(isSkipped("PostgreSQL"))("the example on PostgreSQL", () => {
  let server: DatabaseServer;
  let example: ExampleProcess;

  beforeAll(async () => {
    server = await startPostgres();
    const [one, two] = [server.url(await server.createDatabase()), server.url(await server.createDatabase())];
    example = await new ExampleProcess({ EXAMPLE_DATABASE_URL_1: one, EXAMPLE_DATABASE_URL_2: two }).ready();
  });

  afterAll(async () => {
    await example.end();
    example.removeFolder();
    await server.stop();
  });

  test("a sign-up works, a taken name is refused, and a crash is recovered", async () => {
    expect(example.output).toMatch(/cell 1 .* PostgreSQL/);
    expect((await example.signUp("1", "grace")).status).toBe(303);
    expect((await example.signUp("2", "Grace")).status).toBe(422);
    const away = await example.signUp("1", "saved", "after_commit");
    expect([away.status, away.headers.get("retry-after")]).toEqual([503, "1"]);
    await eventually(
      async () => (await example.records.find({ type: "HANDLES", value: "saved" }))?.record.status,
    ).toBe("ACTIVE");
    await eventually(async () => (await fetch(`${example.url}/saved`)).status).toBe(200);
  });
});
