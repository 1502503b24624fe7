/**
 * Writes the shipped types into `proto/` and the docs, and generates `src/coordinator/wire/generated` and the
 * image of `proto/` from `proto/`, in the current folder. It refuses a change that would break clients,
 * unless `--accept-breaking` is given. With `--check`, only checks that all are up to date.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { gitlabTypesFiles } from "./gitlab-types.ts";

const generated = "src/coordinator/wire/generated";
/** The messages that clients may have. `npm run lint` compares `proto/` with it. */
const image = "proto/image.txtpb";

const buf = (...args: string[]): void => void execFileSync("buf", args, { stdio: "inherit" });
const generate = (...options: string[]): void => buf("generate", ...options);
const build = (file: string): void => buf("build", "--exclude-source-info", "--output", file);

/** The generated files of a folder, with their contents. */
function filesOf(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.\w+$/.test(name),
  );
  return new Map(names.toSorted().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

function isUpToDate(): boolean {
  for (const [file, text] of gitlabTypesFiles()) if (readFileSync(file, "utf8") !== text) return false;
  const folder = mkdtempSync(join(tmpdir(), "leasehold-proto-"));
  try {
    generate("--output", folder);
    const made = filesOf(join(folder, generated));
    const found = filesOf(generated);
    const built = join(folder, "image.txtpb");
    build(built);
    return (
      made.size === found.size &&
      [...made].every(([name, text]) => found.get(name) === text) &&
      readFileSync(built, "utf8") === readFileSync(image, "utf8")
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const options = { check: { type: "boolean" }, "accept-breaking": { type: "boolean" } } as const;
const { values } = parseArgs({ options });

function fail(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}

const isBreaking = (): boolean =>
  spawnSync("buf", ["breaking", "--against", image], { stdio: "inherit" }).status !== 0;

if (values.check === true) {
  const differs = `${generated} or ${image} differs from proto/, or a file from src/common/types/gitlab.ts`;
  if (!isUpToDate()) fail(`${differs}: run \`npm run generate:proto\`.`);
} else {
  for (const [file, text] of gitlabTypesFiles()) writeFileSync(file, text);
  if (values["accept-breaking"] !== true && isBreaking())
    fail(
      "This change of proto/ breaks clients. Add fields instead. If no client can have these messages, run " +
        "`npm run generate:proto -- --accept-breaking`.",
    );
  else {
    generate();
    build(image);
  }
}
