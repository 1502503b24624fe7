/** Tests `leasehold types` and `npm start -- --types` as processes. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../scripts/free-port.ts";
import { Server } from "./server.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "leasehold-types-"));
const execute = promisify(execFile);
const servers: Server[] = [];
let files = 0;

const people = { subject_types: { PERSON: { number: 1 } }, source_types: { PEOPLE: { number: 1 } } };
const set = (bucketTypes: object) => ({ bucket_types: bucketTypes, ...people });
const HANDLES = { number: 1, max_length: 30 };

function fileOf(content: object | string): string {
  const file = join(folder, `types-${(files += 1)}.json`);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

async function start(types: object | string): Promise<Server> {
  const args = ["--types", fileOf(types)];
  const server = new Server(await freePort(), join(folder, "state"), {}, args);
  servers.push(server);
  return server;
}

let server: Server;

beforeAll(async () => {
  server = await (await start(set({ HANDLES }))).ready();
});

afterAll(async () => {
  await Promise.all(servers.map((each) => each.end("SIGKILL")));
  rmSync(folder, { recursive: true, force: true });
});

interface Output {
  code: number;
  stdout: string;
  stderr: string;
}

async function run(...args: string[]): Promise<Output> {
  const env = { ...process.env, LEASEHOLD_URL: server.url, LEASEHOLD_KEY: server.keys.operator };
  try {
    return {
      code: 0,
      ...(await execute(process.execPath, ["scripts/leasehold.mjs", "types", ...args], { cwd: root, env })),
    };
  } catch (error) {
    return error as Output;
  }
}

const apply = (file: string): Promise<Output> => run("apply", "--file", file, "--yes", "--reason", "a test");

const shown = async (): Promise<unknown> => JSON.parse((await run("show")).stdout) as unknown;

describe("leasehold types", () => {
  test("plans, then applies, and shows the set", async () => {
    const wanted = fileOf({ $schema: "./types.schema.json", ...set({ HANDLES, STORES: { number: 2 } }) });
    const added = '+ bucket_types.STORES {"number":2,"form":"plain","script":"single","case":"folded"}';
    expect(await run("plan", "--file", wanted)).toMatchObject({ code: 10, stdout: `${added}\n` });
    expect(await shown()).not.toHaveProperty("bucket_types.STORES");
    expect((await apply(wanted)).stdout).toBe(`${added}\nThe types are declared.\n`);
    expect(await shown()).toHaveProperty("bucket_types.STORES.number", 2);
    expect((await apply(wanted)).stdout).toBe("The deployment has these types already.\n");
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
    const { code, stderr } = await apply(fileOf(content));
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) as unknown });
    expect(await shown()).toEqual(before);
  });

  test("refuses an unknown option and an unknown command", async () => {
    expect((await run("apply", "--fiel", "x")).stderr).toContain("Did you mean --file?");
    expect((await run("aply")).stderr).toContain("Did you mean apply?");
  });
});

describe("the rule of a type in use", () => {
  const exact = set({ HANDLES: { ...HANDLES, case: "exact" } });
  const refusal = "bucket_types.HANDLES is in use, so its canonical rule must not change";

  beforeAll(async () => {
    const lease = "00000000-0000-4000-8000-000000000001";
    const begun = await fetch(`${server.url}/v1/cells/1/leases/${lease}`, {
      method: "PUT",
      headers: {
        authorization: `Bearer ${server.keys.cells["1"]}`,
        "content-type": "application/json",
      },
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
  });

  test("[T3] cannot be changed by a file", async () => {
    for (const { code, stdout } of [await run("plan", "--file", fileOf(exact)), await apply(fileOf(exact))]) {
      expect(code).toBe(3);
      expect(stdout).toContain(`Refused: ${refusal}`);
    }
    expect((await run("show")).stderr).toContain("In use, so unchangeable: bucket_types.HANDLES");
  });

  test("[T3] ends `npm start` with the reason, and the state is kept", async () => {
    await server.end("SIGTERM");
    expect((await (await start(exact)).ended).stderr).toContain(refusal);
    server = await (await start(set({ HANDLES }))).ready();
    expect(await shown()).toHaveProperty("bucket_types.HANDLES.case", "folded");
  });
});
