import { PROGRAM } from "./program.ts";
import { javascriptOf, peers, typesOf, type Entry } from "./entries.ts";

/** The fields that the package takes from the repository's `package.json`. */
export interface RepositoryManifest {
  name: string;
  version: string;
  license?: string;
  engines: { node: string };
}

/** The package's `package.json`. */
export function manifestOf(repository: RepositoryManifest, entries: readonly Entry[]): object {
  const exports = entries.map(
    (entry) =>
      [`./${entry.name}`, { types: `./${typesOf(entry)}`, default: `./${javascriptOf(entry)}` }] as const,
  );
  return {
    name: repository.name,
    version: repository.version,
    description:
      "Globally unique names for independent cells: the client, the cell's part, a coordinator for tests.",
    license: repository.license ?? "UNLICENSED",
    type: "module",
    sideEffects: false,
    engines: repository.engines,
    bin: { [repository.name]: PROGRAM },
    exports: { ...Object.fromEntries(exports), "./package.json": "./package.json" },
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((peer) => [peer, { optional: true }])),
  };
}
