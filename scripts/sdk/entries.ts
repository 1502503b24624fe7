/** What users of the package import, and what each of these may bring along. The build checks both. */
import manifest from "../../package.json" with { type: "json" };

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

/** What each entry may bring along. The names and sources are in `exports` of the repository's package.json. */
const rules: Readonly<Record<string, Pick<Entry, "peers" | "bundles" | "runsOn">>> = {
  client: { peers: [], bundles: ["uuid"], runsOn: "any" },
  cell: { peers: ["drizzle-orm"], bundles: ["@noble/hashes", "uuid"], runsOn: "any" },
  "cell/postgres": { peers: ["drizzle-orm"], bundles: ["uuid"], runsOn: "any" },
  "cell/mysql": { peers: ["drizzle-orm"], bundles: ["uuid"], runsOn: "any" },
  // It contains the coordinator.
  testing: { peers: [], bundles: ["@noble/hashes", "drizzle-orm", "hono", "uuid", "zod"], runsOn: "node" },
};

/** Joins package.json's `exports` with the rules. Throws when one of them lacks an entry that the other has. */
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

/** Of what an import names, such as `drizzle-orm` of `drizzle-orm/pg-core`. */
export const packageOf = (specifier: string): string =>
  specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");

/** Where the package has an entry's JavaScript. */
export const javascriptOf = ({ name }: Entry): string => `js/${name}.js`;

/** And its types, which keep the folders of the sources. */
export const typesOf = ({ source }: Entry): string =>
  `types/${source.replace(/^src\//, "").replace(/\.ts$/, ".d.ts")}`;
