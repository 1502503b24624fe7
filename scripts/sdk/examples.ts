import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { runTsc } from "./run.ts";

export interface Example {
  /** The file that shows it, and the line. */
  where: string;
  /** The function that it documents, when it is the `@example` of one. */
  of: string | undefined;
  /** The file name in the sample's first line, such as `// claims.ts`. Other samples import it. */
  file: string | undefined;
  code: string;
}

/** What examples use without declaring it. `any` stands for the reader's own code. */
const CONTEXT = `
import type { Cell, Claimable } from "leasehold/cell";
import type { Client } from "leasehold/client";
import type { TestCoordinator } from "leasehold/testing";
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import type { eq as Eq } from "drizzle-orm";
import type { ClaimTransaction } from "leasehold/cell";
import type * as schema from "./schema.ts";

interface Model<Row, NewRow> {
  [key: symbol]: {
    types: {
      payload: { scalars: Row };
      operations: {
        findMany: { args: { where?: Partial<Row> } };
        createManyAndReturn: { args: { data: NewRow | NewRow[] } };
        updateManyAndReturn: { args: { data: Partial<Row> } };
      };
    };
  };
  create(options: { data: NewRow }): Promise<Row>;
}
/** Stands for a generated Prisma client. */
interface Prisma {
  user: Model<{ id: number; username: string }, { username: string }>;
  audit: Model<{ id: number; userId: number }, { userId: number }>;
  $connect(): Promise<void>;
  $queryRawUnsafe<T>(statement: string, ...parameters: unknown[]): Promise<T>;
  $transaction<T>(body: (tx: Omit<Prisma, "$connect">) => Promise<T>): Promise<T>;
}

declare global {
  const prisma: Prisma;
  const client: Client;
  const cell: Cell<NodePgDatabase>;
  const db: NodePgDatabase;
  const tx: ClaimTransaction<NodePgDatabase>;
  const coordinator: TestCoordinator;
  const users: typeof schema.users;
  const emails: typeof schema.emails;
  const profiles: typeof schema.profiles;
  const projects: typeof schema.projects;
  const groups: typeof schema.groups;
  const claimableUsers: Claimable<typeof schema.users>;
  const user: typeof schema.users.$inferSelect;
  const group: typeof schema.groups.$inferSelect;
  const eq: typeof Eq;
  const drizzle: (pool: unknown) => NodePgDatabase;
  const url: string, key: string;
  const clientOf: (cell: string) => Client;
  const pool: any, form: any, flags: any, logger: any, database: any, create: any;
  const signUp: any, recordOf: any, recover: any, fetchStale: any, kept: any, keep: any, compare: any;
  const test: any, expect: any;
}
`;

const SCHEMA = `
import { boolean, pgTable, serial, text, timestamp, uuid } from "drizzle-orm/pg-core";

export const users = pgTable("users", {
  id: serial().primaryKey(),
  username: text().notNull(),
  email: text(),
  confirmed: boolean().notNull().default(false),
  updatedAt: timestamp({ withTimezone: true }),
});
export const emails = pgTable("emails", {
  id: serial().primaryKey(),
  userId: serial().notNull(),
  email: text().notNull(),
  confirmed: boolean().notNull(),
});
export const profiles = pgTable("profiles", { userId: serial().primaryKey() });
export const projects = pgTable("projects", { id: uuid().primaryKey(), path: text().notNull() });
export const groups = pgTable("groups", { id: serial().primaryKey(), path: text().notNull() });
`;

/** The \`\`\`ts samples of a text, and the function that follows each one. */
export function examplesOf(where: string, text: string): Example[] {
  const isSource = where.endsWith(".ts");
  const fence = isSource ? /^ \* ```ts\n((?: \*.*\n)*?) \* ```$/gm : /^```ts\n(.*?)^```$/gms;
  return [...text.matchAll(fence)].map(({ 0: whole, 1: body = "", index }) => {
    const code = isSource ? body.replaceAll(/^ \* ?/gm, "") : body;
    const after = text.slice(index + whole.length);
    const [, of] = /^\n \*\/\nexport (?:const|async function|function) (\w+)/.exec(after) ?? [];
    const [, file] = /^\/\/ ([\w-]+\.ts)\n/.exec(code) ?? [];
    const line = text.slice(0, index).split("\n").length + 1;
    return { where: `${where}:${line}`, of, file, code };
  });
}

/** The examples of the SDK's sources, and the samples of the pages that show its use. */
export function allExamples(root: string): Example[] {
  const sources = [
    "src/users/client",
    "src/users/cell",
    "src/users/router",
    "src/users/router-node",
    "src/users/testing",
  ].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => posix.join(folder, name)),
  );
  const pages = [
    "README.md",
    "scripts/sdk/README.md",
    "docs/guides/cell-behind-a-router.md",
    "docs/guides/declare-types.md",
    "docs/guides/deploy-a-router.md",
    "docs/guides/make-a-table-claimable.md",
    "docs/guides/move-an-organization.md",
    "docs/guides/route-requests.md",
    "docs/guides/testing-your-cell.md",
    "docs/guides/write-an-adapter.md",
    "docs/operating/verification.md",
    "docs/reference/databases.md",
    "docs/reference/sdk.md",
  ];
  return [...sources, ...pages].flatMap((path) => examplesOf(path, readFileSync(join(root, path), "utf8")));
}

/**
 * The exported functions of an entry that have no `@example`. `values` has the entry's exports, which other
 * entries may share.
 */
export const withoutExample = (
  values: Readonly<Record<string, unknown>>,
  examples: readonly Example[],
): string[] =>
  Object.entries(values)
    .filter(([name, value]) => typeof value === "function" && /^[a-z]/.test(name))
    .filter(([name]) => !examples.some(({ of }) => of === name))
    .map(([name]) => name);

/** Registered types apply to a whole program, so an example that registers some has a program of its own. */
const registersTypes = ({ code }: Example): boolean => code.includes("interface Register");

const TYPES = JSON.stringify({
  bucket_types: { HANDLES: { number: 1 } },
  subject_types: { PERSON: { number: 1 } },
  source_types: { PEOPLE: { number: 1 } },
});

/** Compiles examples against the package installed in `project`. Throws what the compiler reports. */
export function compileExamples(project: string, examples: readonly Example[]): void {
  compileTogether(
    join(project, "examples"),
    examples.filter((each) => !registersTypes(each)),
  );
  for (const [index, example] of examples.filter(registersTypes).entries())
    compileTogether(join(project, `examples-with-types-${index}`), [example]);
}

function compileTogether(folder: string, examples: readonly Example[]): void {
  const files = examples.map(({ where, file, code }) => {
    const page = where.replaceAll(/[^\w]+/g, "_").replace(/_\d+$/, "");
    const path = join(page, file ?? `${where.replaceAll(/[^\w]+/g, "_")}.ts`);
    mkdirSync(join(folder, page), { recursive: true });
    writeFileSync(join(folder, page, "schema.ts"), SCHEMA);
    writeFileSync(join(folder, page, "leasehold.types.json"), TYPES);
    writeFileSync(join(folder, path), `${code}\nexport {};\n`);
    return path;
  });
  writeFileSync(join(folder, "schema.ts"), SCHEMA);
  writeFileSync(join(folder, "context.d.ts"), CONTEXT);
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    target: "es2022",
    module: "preserve",
    moduleResolution: "bundler",
    resolveJsonModule: true,
    lib: ["es2023"],
    types: ["node"],
  };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["context.d.ts", ...files] }),
  );
  runTsc(folder);
}
