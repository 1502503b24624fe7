import { build, type Metafile, type Plugin } from "esbuild";
import { join } from "node:path";
import { javascriptOf, packageOf, peers, type Entry } from "./entries.ts";

/**
 * Writes the package's JavaScript into `folder`. All entries are one build with shared chunks, so an error of
 * the client has the same class in every entry. Throws when an entry brings along something that it must not
 * have.
 */
export async function buildJavascript(
  root: string,
  entries: readonly Entry[],
  folder: string,
): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: entries.map(({ name, source }) => ({ in: source, out: name })),
    outdir: join(folder, "js"),
    bundle: true,
    splitting: true,
    chunkNames: "shared/[name]-[hash]",
    format: "esm",
    platform: "neutral",
    target: "es2022",
    mainFields: ["module", "main"],
    plugins: [peersOf(join(root, "src/users/cell/"))],
    external: ["node:*"],
    // THIRD_PARTY_LICENSES.md has the licences.
    legalComments: "none",
    metafile: true,
    logLevel: "silent",
  });
  const reached = entries.map((entry) => reachOf(metafile, entry));
  const complaints = entries.flatMap((entry, at) => complaintsOf(entry, reached[at]));
  if (complaints.length > 0) throw new Error(complaints.join("\n"));
  return [...new Set(reached.flatMap(({ bundled }) => [...bundled]))].toSorted();
}

/**
 * Leaves peers to the user's own copies, because a cell's tables must be made with the same drizzle. The
 * coordinator for tests bundles its own.
 */
const peersOf = (cells: string): Plugin => ({
  name: "peers",
  setup: (bundler) => {
    bundler.onResolve({ filter: /^[^./]/ }, ({ path, importer }) =>
      packageOf(path) in peers && importer.startsWith(cells) ? { path, external: true } : undefined,
    );
  },
});

interface Reach {
  /** The npm packages whose code it contains. */
  bundled: ReadonlySet<string>;
  /** The modules that it imports at run time. */
  imported: ReadonlySet<string>;
}

/** What an entry reaches, including the chunks that it shares. */
function reachOf({ outputs }: Metafile, entry: Entry): Reach {
  const files = Object.entries(outputs);
  const [first] = files.find(([, { entryPoint }]) => entryPoint === entry.source) ?? [];
  const reached = new Set([first ?? javascriptOf(entry)]);
  const bundled = new Set<string>();
  const imported = new Set<string>();
  for (const file of reached) {
    const output = outputs[file];
    for (const [input, { bytesInOutput }] of Object.entries(output?.inputs ?? {})) {
      const [, path] = /^.*node_modules\/(.+)$/.exec(input) ?? [];
      if (path !== undefined && bytesInOutput > 0) bundled.add(packageOf(path));
    }
    for (const { path, external } of output?.imports ?? [])
      (external === true ? imported : reached).add(path);
  }
  return { bundled, imported };
}

function complaintsOf(
  entry: Entry,
  { bundled, imported }: Reach = { bundled: new Set(), imported: new Set() },
): string[] {
  const isPeer = (specifier: string): boolean => entry.peers.some((peer) => peer === packageOf(specifier));
  const isNodes = (specifier: string): boolean => entry.runsOn === "node" && specifier.startsWith("node:");
  return [
    ...[...bundled]
      .filter((name) => !entry.bundles.includes(name))
      .map((name) => `leasehold/${entry.name} has ${name} in it`),
    ...[...imported]
      .filter((path) => !isPeer(path) && !isNodes(path))
      .map((path) => `leasehold/${entry.name} imports ${path}`),
  ];
}
