/** Changes of `proto/` that would break clients are found, and can be accepted. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const script = join(root, "scripts/proto.ts");
const PATH = `${join(root, "node_modules/.bin")}${delimiter}${process.env["PATH"]}`;
const CELLS = "proto/gitlab/cells/topology_service/cell_service.proto";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-proto-test-"));
  for (const name of [
    "proto",
    "buf.yaml",
    "buf.gen.yaml",
    "src/coordinator/wire/generated",
    "docs/concepts/names.md",
  ])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

const run = (command: string, ...args: string[]) =>
  spawnSync(command, args, { cwd: folder, encoding: "utf8", env: { ...process.env, PATH } });
const generate = (...args: string[]) => run(process.execPath, script, ...args);
/** The last part of `npm run lint`. */
const breaking = () => run("buf", "breaking", "--against", "proto/image.txtpb");

function change(from: string, to: string): void {
  const file = join(folder, CELLS);
  const text = readFileSync(file, "utf8");
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
}

test("lint compares with the image", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  expect(scripts["lint"]).toContain("buf breaking --against proto/image.txtpb");
  expect([breaking().status, generate("--check").status]).toEqual([0, 0]);
});

test.each([
  ["another type of a field", "string address = 3;", "bytes address = 3;", 'Field "3"'],
  ["another number of a field", "string address = 3;", "string address = 9;", 'field "3"'],
  ["a field that is gone", "string session_prefix = 4;", "", 'field "4"'],
  ["another name of a field", "string session_prefix = 4;", "string prefix = 4;", 'Field "4"'],
])("%s breaks clients", (_, from, to, told) => {
  change(from, to);
  expect(breaking()).toMatchObject({ status: 100, stdout: expect.stringContaining(told) });
  expect(generate()).toMatchObject({ status: 1, stderr: expect.stringContaining("--accept-breaking") });
  expect(readFileSync(join(folder, "proto/image.txtpb"), "utf8")).toContain('json_name: "sessionPrefix"');
});

test("a breaking change that is accepted becomes the image", () => {
  change("string session_prefix = 4;", "");
  expect(generate("--check").status).toBe(1);
  expect(generate("--accept-breaking").status).toBe(0);
  expect([breaking().status, generate("--check").status]).toEqual([0, 0]);
});

test("a new field breaks nobody, and is in the image afterwards", () => {
  change("string session_prefix = 4;", "string session_prefix = 4; string more = 5;");
  expect([breaking().status, generate("--check").status]).toEqual([0, 1]);
  expect(generate().status).toBe(0);
  expect(generate("--check").status).toBe(0);
  change("string more = 5;", "");
  expect(breaking().status).toBe(100);
});

test("the types that Leasehold ships are written into the messages and the docs", () => {
  for (const name of ["claims/v1/claim_service.proto", "types/v1/types.proto"])
    expect(readFileSync(join(folder, "proto/gitlab/cells/topology_service", name), "utf8")).toMatch(
      /PAGES_DOMAINS? = 17;/,
    );
  const page = join(folder, "docs/concepts/names.md");
  const text = readFileSync(page, "utf8");
  writeFileSync(page, text.replace("| `PAGES_DOMAINS`  ", "| `OTHER_DOMAINS`  "));
  expect(generate("--check")).toMatchObject({ status: 1, stderr: expect.stringContaining("gitlab.ts") });
  expect(generate().status).toBe(0);
  expect([readFileSync(page, "utf8") === text, generate("--check").status]).toEqual([true, 0]);
});
