/** Moves files of the repository, with everything that names them. `--help` says how. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { matchesGlob, posix } from "node:path";
import { parseArgs } from "node:util";

const HELP = `node scripts/move-files.ts [options] FROM TO [FROM TO ...]

Moves files and folders, and changes whatever names them: imports and other relative paths in
quotes, links in Markdown, and paths from the root or from src/ in any file. All paths are relative
to the root. The longest FROM that contains a file decides. Lists the patterns that no longer match a
moved file, for you to change. Commits nothing. Afterwards: npm run format && npm run check:source

  --table FILE   reads more pairs from a file, one on each line
  --with-tests   moves what tests src/PATH along: the folder test/PATH, or the files PATH.test.ts and
                 PATH.deep.test.ts in test/
  --dry-run      changes nothing, and lists each reference that would change
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    table: { type: "string" },
    "with-tests": { type: "boolean", default: false },
    "dry-run": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function refuse(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const git = (...args: string[]): string =>
  execFileSync("git", args, { encoding: "utf8", maxBuffer: 2 ** 28 }).trimEnd();

/**
 * A relative path in quotes, up to a query or to what a template adds. A folder counts only after the text at
 * the start, because elsewhere `..` may be no path.
 */
const QUOTED = /(URL\(\s*|dirname,\s*)?(["'`])(\.\.?(?:\/[^"'`?#$\s]*)?)(?=\2|[?#]|\$\{)/g;
const LINK = /(\]\(|^\[[^\]]+\]:\s+)([^()\s#?:]+)/gm;
/** A path from the root or from `src/`. */
const ROOTED = /(?<![\w./@-])[\w.@-]+\/(?:[\w.@-]+\/)*[\w.@-]*/g;
/** A path or pattern in quotes. */
const PATTERN = /["'`]!?([^"'`\s]*\/[^"'`\s]*)["'`]/g;

const withoutSlash = (path: string): string => posix.normalize(path).replace(/\/$/, "");

const pairs = new Map<string, string>();

/** Where a path is afterwards. */
function movedPath(path: string): string {
  for (let part = path; part.includes("/") || pairs.has(part); part = posix.dirname(part)) {
    const to = pairs.get(part);
    if (to !== undefined) return to + path.slice(part.length);
  }
  return path;
}

function readPairs(tracked: readonly string[], words: readonly string[]): void {
  if (words.length === 0 || words.length % 2 !== 0) refuse(`each FROM needs a TO\n\n${HELP}`);
  const isTracked = (path: string): boolean =>
    tracked.some((file) => file === path || file.startsWith(`${path}/`));
  for (let index = 0; index < words.length; index += 2) {
    const [from, to] = words.slice(index, index + 2).map(withoutSlash) as [string, string];
    if (pairs.has(from)) refuse(`${from} is to be moved twice`);
    if (!isTracked(from)) refuse(`${from} is no file or folder that Git knows`);
    pairs.set(from, to);
  }
  if (!values["with-tests"]) return;
  for (const [from, to] of [...pairs].filter((pair) => pair.every((path) => path.startsWith("src/"))))
    for (const suffix of ["", ".test.ts", ".deep.test.ts"]) {
      const [test, moved] = [from, to].map((path) =>
        path.replace(/^src/, "test").replace(/\.ts$/, (end) => suffix || end),
      ) as [string, string];
      if (isTracked(test) && !pairs.has(test)) pairs.set(test, moved);
    }
}

/** The text of a file with all references as they must be afterwards. */
function rewrite(file: string, text: string): string {
  const [from, to] = [posix.dirname(file), posix.dirname(movedPath(file))];
  const relative = (path: string, mayBeFolder: boolean): string => {
    const target = posix.join(from, path);
    const moved = movedPath(withoutSlash(target));
    if ((from === to && moved === withoutSlash(target)) || !existsSync(target)) return path;
    if (!mayBeFolder && lstatSync(target).isDirectory()) return path;
    const changed = posix.relative(to, moved) || ".";
    const start = /^\.\.?(\/|$)/.test(changed) || !path.startsWith(".") ? "" : "./";
    return start + changed + (path.endsWith("/") ? "/" : "");
  };
  const rooted = (found: string): string => {
    const path = found.replace(/[./]+$/, "");
    const moved = movedPath(path);
    // A single word with a slash may be anything.
    const isBelow = moved === path && path.includes("/") && existsSync(`src/${path}`) && !existsSync(path);
    const movedBelow = isBelow ? movedPath(`src/${path}`).replace(/^src\//, "") : moved;
    return movedBelow + found.slice(path.length);
  };
  const relativeChanged = text.replaceAll(
    QUOTED,
    (_, before: string | undefined, quote: string, path: string) =>
      `${before ?? ""}${quote}${relative(path, before !== undefined)}`,
  );
  const linksChanged = file.endsWith(".md")
    ? relativeChanged.replaceAll(LINK, (_, before: string, path: string) => before + relative(path, true))
    : relativeChanged;
  return linksChanged.replaceAll(ROOTED, rooted);
}

/** Patterns and folders in a text that match a file where it was, but not where it is. */
function stalePatterns(file: string, text: string, moves: readonly (readonly [string, string])[]): string[] {
  const stale = (pattern: string): boolean => {
    const [start = ""] = pattern.split(/[*{]/);
    if (file.endsWith(".md") && start === pattern) return false;
    const matches = (path: string): boolean =>
      matchesGlob(path, pattern) || matchesGlob(path, posix.join(pattern, "**"));
    return moves.some(([from, to]) => from.startsWith(start) && matches(from) && !matches(to));
  };
  return [...new Set(Array.from(text.matchAll(PATTERN), ([, pattern = ""]) => pattern))].filter(stale);
}

function printChanges(file: string, before: string, after: string): void {
  const lines = after.split("\n");
  for (const [index, line] of before.split("\n").entries())
    if (line !== lines[index]) print(`${file}:${index + 1}\n-${line}\n+${lines[index]}`);
}

/** Moves a file, and removes the folders that it leaves empty. */
function move(from: string, to: string): void {
  mkdirSync(posix.dirname(to), { recursive: true });
  renameSync(from, to);
  try {
    for (let folder = posix.dirname(from); ; folder = posix.dirname(folder)) rmdirSync(folder);
  } catch {
    // The folder still has files.
  }
}

function main(): void {
  const table = values.table === undefined ? "" : readFileSync(values.table, "utf8");
  process.chdir(git("rev-parse", "--show-toplevel"));
  if (git("status", "--porcelain") !== "") refuse("commit your changes first");
  const tracked = git("ls-files", "-z")
    .split("\0")
    .filter((file) => file !== "" && lstatSync(file).isFile());
  readPairs(tracked, [...positionals, ...table.split(/\s+/).filter((word) => word !== "")]);

  const moves = tracked.map((file) => [file, movedPath(file)] as const).filter(([from, to]) => from !== to);
  const targets = new Set<string>();
  for (const [from, to] of moves) {
    if (existsSync(to) || targets.has(to))
      refuse(`${from} cannot move to ${to}: choose a path that no other file has`);
    targets.add(to);
  }

  let changed = 0;
  const stale: string[] = [];
  for (const file of tracked) {
    const bytes = readFileSync(file);
    const before = bytes.toString();
    if (!Buffer.from(before).equals(bytes)) continue;
    const after = rewrite(file, before);
    stale.push(...stalePatterns(file, after, moves).map((pattern) => `  ${movedPath(file)}: ${pattern}`));
    if (after === before) continue;
    changed += 1;
    if (values["dry-run"]) printChanges(file, before, after);
    else writeFileSync(file, after);
  }
  for (const [from, to] of moves) {
    if (values["dry-run"]) print(`${from} -> ${to}`);
    else move(from, to);
  }
  if (!values["dry-run"]) git("add", "--all");
  if (stale.length > 0) print(["These patterns no longer match a file that was moved:", ...stale].join("\n"));
  print(`${moves.length} files to move, ${changed} files to change${values["dry-run"] ? "" : ": done"}`);
}

if (values.help) print(HELP);
else main();
