/** The entries that users import, and what each may bring along. The build checks both. */
import manifest from "../../package.json" with { type: "json" };

/** Packages that users install themselves, for the entries that need them. */
export const peers = {
  "@electric-sql/pglite": "^0.5.0",
  "drizzle-orm": "^0.45.2",
  kysely: "^0.28.0 || ^0.29.0",
  mysql2: "^3.9.0",
  pg: "^8.11.0",
  postgres: "^3.4.0",
} as const;

type Peer = keyof typeof peers;

export interface Entry {
  /** The import path without `leasehold/`. */
  name: string;
  /** The path from the root of the repository. */
  source: string;
  /** Peers that its code and its types import. */
  peers: readonly Peer[];
  /** The npm packages whose code may be in its JavaScript. */
  bundles: readonly string[];
  /**
   * `any`: every platform with `fetch` and the language features of Node 20. `node`: Node, with its modules.
   */
  runsOn: "any" | "node";
}

/** The packages of the coordinator. */
export const WORKER: readonly string[] = [
  "@bufbuild/protobuf",
  "@connectrpc/connect",
  "@noble/hashes",
  "@peculiar/asn1-ecc",
  "@peculiar/asn1-schema",
  "@peculiar/asn1-x509",
  "@peculiar/utils",
  "asn1js",
  "drizzle-orm",
  "jose",
  "pvtsutils",
  "pvutils",
  "re2js",
  "tslib",
  "uuid",
  "zod",
];

/** What each entry may bring along. Names and sources come from `exports` in package.json. */
const rules: Readonly<Record<string, Pick<Entry, "peers" | "bundles" | "runsOn">>> = {
  client: { peers: [], bundles: ["uuid"], runsOn: "any" },
  cell: { peers: ["drizzle-orm"], bundles: ["@noble/hashes", "re2js", "uuid"], runsOn: "any" },
  "cell/postgres": { peers: ["drizzle-orm"], bundles: ["uuid"], runsOn: "any" },
  "cell/mysql": { peers: ["drizzle-orm"], bundles: ["uuid"], runsOn: "any" },
  "cell/pg": { peers: ["drizzle-orm", "pg"], bundles: ["uuid"], runsOn: "any" },
  "cell/mysql2": { peers: ["drizzle-orm", "mysql2"], bundles: ["uuid"], runsOn: "any" },
  "cell/kysely": { peers: ["drizzle-orm", "kysely"], bundles: ["uuid"], runsOn: "any" },
  // It calls the generated client that it is given, and imports nothing of Prisma.
  "cell/prisma": { peers: ["drizzle-orm"], bundles: ["uuid"], runsOn: "any" },
  "cell/adapter": { peers: ["drizzle-orm"], bundles: ["uuid"], runsOn: "any" },
  // It contains the coordinator, which is loaded when its tests run.
  "cell/conformance": { peers: ["drizzle-orm"], bundles: WORKER, runsOn: "node" },
  router: { peers: [], bundles: [], runsOn: "any" },
  "router/node": { peers: [], bundles: ["@hono/node-server", "hono"], runsOn: "node" },
  // It contains the coordinator.
  testing: { peers: [], bundles: WORKER, runsOn: "node" },
};

/** Joins package.json's `exports` with the rules. Throws when an entry is only in one of them. */
export function entriesOf(exports: Readonly<Record<string, string>>): readonly Entry[] {
  const sources = new Map(Object.entries(exports).map(([path, source]) => [path.replace("./", ""), source]));
  const withoutExport = Object.keys(rules).filter((name) => !sources.has(name));
  if (withoutExport.length > 0)
    throw new Error(`package.json has no \`exports\` for ${withoutExport.join(", ")}`);
  return [...sources].map(([name, source]) => {
    const rule = rules[name];
    if (rule === undefined) throw new Error(`scripts/sdk/entries.ts has no rules for leasehold/${name}`);
    return { name, source: source.replace("./", ""), ...rule };
  });
}

export const entries = entriesOf(manifest.exports);

/** The package that a specifier names, such as `drizzle-orm` for `drizzle-orm/pg-core`. */
export const packageOf = (specifier: string): string =>
  specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");

/** The path of an entry's JavaScript in the package. */
export const javascriptOf = ({ name }: Entry): string => `js/${name}.js`;

/** The path of an entry's types in the package. They keep the folders of the sources. */
export const typesOf = ({ source }: Entry): string =>
  `types/${source.replace(/^src\//, "").replace(/\.ts$/, ".d.ts")}`;
