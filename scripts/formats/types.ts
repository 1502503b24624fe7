/** The types in `shapes.ts`, as declarations without code, and their comparison with those of a release. */
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import type { Difference } from "./difference.ts";
import { shapes } from "./shapes.ts";
import { writeFiles } from "./write-files.ts";

export interface Types {
  /** By name, such as `ledger.begin`: the level of a method and whether it tells. Null for other types. */
  levels: Readonly<Record<string, string | null>>;
  /** The text of each declaration file, by its path from the root of the repository. */
  declarations: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "../..");
const ADDITION = /^declare module "\./m;
const SHAPES = "scripts/formats/shapes.d.ts";

/** Reads the types of this code. */
export function typesOfToday(): Types {
  const levels = Object.entries(shapes).flatMap(([list, members]) =>
    Object.entries(members).map(([name, member]): [string, string | null] => [
      `${list}.${name}`,
      "level" in member ? `${member.level}${member.tells ? ", tells" : ""}` : null,
    ]),
  );
  return { levels: Object.fromEntries(levels), declarations: inTemporary(declarationsIn) };
}

/** Emits the declarations into a folder, and returns those that the shapes need. */
function declarationsIn(folder: string): Record<string, string> {
  // The code is checked by `npm run typecheck`.
  const emit = ["--declaration", "--emitDeclarationOnly", "--removeComments", "--noCheck"];
  const source = SHAPES.replace(/\.d\.ts$/, ".ts");
  const failure = tsc(root, [source, ...emit, "--rootDir", ".", "--outDir", folder]);
  if (failure !== "") throw new Error(failure);
  // Capabilities add fields to messages of the kernel. Nothing imports these declarations by name.
  const additions = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".d.ts") && ADDITION.test(readFileSync(join(folder, path), "utf8")))
    .toSorted();
  const imports = additions.map((path) => `import "${posix.relative(posix.dirname(SHAPES), path)}";\n`);
  appendFileSync(join(folder, SHAPES), imports.join("").replaceAll(/\.d\.ts"/g, '.ts"'));
  const texts: Record<string, string> = {};
  const waiting = [SHAPES];
  for (const path of waiting) {
    const text = (texts[path] ??= readFileSync(join(folder, path), "utf8"));
    for (const [, to = ""] of text.matchAll(/(?:from |import[ (])"(\.[^"]+)"/g)) {
      const next = posix.join(posix.dirname(path), to.replace(/\.ts$/, ".d.ts"));
      if (!waiting.includes(next)) waiting.push(next);
    }
  }
  return texts;
}

/**
 * A type as the wire has it. A type that is unknown, `any` or `never` becomes the name of its side, so it
 * fits no type of the other side. What a refusal says is not compared, because peers pass it on as it is.
 */
const PREAMBLE = `
type Wire<T, Side> = unknown extends T ? Side : [T] extends [never] ? Side
  : T extends { code: unknown; detail: string } ? "refusal"
  : { -readonly [K in keyof T]: Wire<T[K], Side> };
type Whole<T> = { [K in keyof T]-?: Whole<T[K]> };
type Sides<Lists, Side> = { [L in keyof Lists]: { [M in keyof Lists[L]]:
  Lists[L][M] extends { readonly types?: infer T } ? Wire<NonNullable<T>, Side> : Side } };
type Release = Sides<typeof import("./release/${SHAPES}").shapes, "release">;
type Today = Sides<typeof import("./today/${SHAPES}").shapes, "today">;
declare const release: Release;
declare const today: Today;
declare const whole: Whole<Today>;
`;

const LOST = "has lost a field";
const MISSING = " is missing";

interface Check {
  what: string;
  fault: string;
  code: string;
}

/** Returns the types with which code of the release and of today would not understand each other. */
export function typeDifferences(release: Types, today: Types): Difference[] {
  const differences: Difference[] = [];
  const checks: Check[] = [];
  for (const [what, level] of Object.entries(release.levels)) {
    const now = today.levels[what];
    if (now === undefined) differences.push({ what, fault: "it was removed" });
    else {
      if (now !== level) differences.push({ what, fault: `its level was \`${level}\` and is \`${now}\`` });
      for (const part of level === null ? ["value"] : ["message", "value"])
        checks.push(...checksOf(what, part));
    }
  }
  return [...differences, ...inTemporary((folder) => failedChecks(folder, release, today, checks))];
}

function checksOf(what: string, part: string): Check[] {
  const at = `${what}.${part}`;
  const type = `["${at.replaceAll(".", '"]["')}"]`;
  // `failedChecks` counts on this order.
  return [
    { what, fault: `code of the release cannot read its ${part}`, code: `: Release${type} = today.${at};` },
    {
      what,
      fault: `this code cannot read its ${part} of the release`,
      code: `: Today${type} = release.${at};`,
    },
    { what, fault: `its ${part} ${LOST}`, code: `: Whole<Release${type}> = whole.${at};` },
  ];
}

function failedChecks(folder: string, release: Types, today: Types, checks: readonly Check[]): Difference[] {
  writeFiles(join(folder, "release"), release.declarations);
  writeFiles(join(folder, "today"), today.declarations);
  const first = PREAMBLE.split("\n").length;
  writeFileSync(
    join(folder, "checks.ts"),
    PREAMBLE + checks.map(({ code }, index) => `export const c${index}${code}\n`).join(""),
  );
  // Declarations are checked, too: a missing file would only make types unknown.
  const errors = tsc(folder, ["checks.ts", "--noEmit"]);
  const failed = new Set<number>();
  return errors
    .split(/\n(?=\S)/)
    .filter((error) => error !== "")
    .flatMap((error) => {
      const index = Number(/^checks\.ts\((\d+),/.exec(error)?.[1]) - first;
      const check = checks[index];
      if (check === undefined) return [{ what: "types", fault: error }];
      failed.add(index);
      const reason = reasonOf(error);
      const isRepeated = check.fault.endsWith(LOST) && failed.has(index - 2) && !reason.endsWith(MISSING);
      return isRepeated ? [] : [{ what: check.what, fault: `${check.fault}: ${reason}` }];
    });
}

/** Shortens an error of the compiler to the field and the innermost reason. */
function reasonOf(error: string): string {
  const path = [...error.matchAll(/^ *(?:Types of property|The types of) '([^']+)'/gm)].map(([, at]) => at);
  const at = (field: string): string => `\`${[...path, field].join(".")}\``;
  const last = (error.trim().split("\n").at(-1) ?? "").replace(/^.*error TS\d+: /, "").trim();
  const [, field, state] = /^Property '([^']+)' is (missing|optional)/.exec(last) ?? [];
  if (field !== undefined) return at(field) + (state === "missing" ? MISSING : " may be missing");
  const [, fields] = /is missing the following properties from type .*: (.*?)\.?$/.exec(last) ?? [];
  if (fields !== undefined) return fields.split(", ").map(at).join(" and ") + MISSING;
  const reason = last.replaceAll(/import\("[^"]*"\)\./g, "");
  return path.length === 0 ? reason : `\`${path.join(".")}\`: ${reason}`;
}

const OPTIONS =
  "--ignoreConfig --strict --exactOptionalPropertyTypes --target esnext --module nodenext " +
  "--allowImportingTsExtensions --pretty false";

/** Runs the compiler in a folder, and returns its errors. */
function tsc(folder: string, more: readonly string[]): string {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, ...more, ...OPTIONS.split(" ")], {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 100_000_000,
  });
  return status === 0 ? "" : `${stdout}${stderr}`.trim() || "the compiler failed";
}

function inTemporary<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-formats-"));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
