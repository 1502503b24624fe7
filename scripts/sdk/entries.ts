/** What users of the package import, and what each of these may bring along. The build holds them to it. */

/** The user's own copies are used, of those entries that need them. */
export const peers = {
  "@electric-sql/pglite": "^0.5.0",
  "drizzle-orm": "^0.45.2",
  mysql2: "^3.9.0",
  pg: "^8.11.0",
  postgres: "^3.4.0",
} as const;

type Peer = keyof typeof peers;

export interface Entry {
  /** Behind `leasehold/`. */
  name: string;
  /** From the root of the repository. */
  source: string;
  /** Imported by it, and by its types. */
  peers: readonly Peer[];
  /** npm packages with code in its JavaScript. */
  bundles: readonly string[];
  /** `any`: wherever there are `fetch` and what Node 20 has of the language. `node`: Node's own modules too. */
  runsOn: "any" | "node";
}

export const entries: readonly Entry[] = [
  { name: "client", source: "src/client/index.ts", peers: [], bundles: ["uuid"], runsOn: "any" },
  {
    name: "cell",
    source: "src/cell/index.ts",
    peers: ["drizzle-orm"],
    bundles: ["@noble/hashes", "uuid"],
    runsOn: "any",
  },
  {
    name: "cell/postgres",
    source: "src/cell/postgres/index.ts",
    peers: ["drizzle-orm"],
    bundles: ["uuid"],
    runsOn: "any",
  },
  {
    name: "cell/mysql",
    source: "src/cell/mysql/index.ts",
    peers: ["drizzle-orm"],
    bundles: ["uuid"],
    runsOn: "any",
  },
  // The coordinator itself is in it.
  {
    name: "testing",
    source: "src/testing/index.ts",
    peers: [],
    bundles: ["@noble/hashes", "drizzle-orm", "hono", "uuid", "zod"],
    runsOn: "node",
  },
];

/** Of what an import names, such as `drizzle-orm` of `drizzle-orm/pg-core`. */
export const packageOf = (specifier: string): string =>
  specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");

/** Where the package has an entry's JavaScript. */
export const javascriptOf = ({ name }: Entry): string => `js/${name}.js`;

/** And its types, which keep the folders of the sources. */
export const typesOf = ({ source }: Entry): string =>
  `types/${source.replace(/^src\//, "").replace(/\.ts$/, ".d.ts")}`;
