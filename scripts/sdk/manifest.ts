import { javascriptOf, peers, typesOf, type Entry } from "./entries.ts";

/** What the package takes from the repository's own `package.json`. */
export interface Origin {
  name: string;
  version: string;
  license?: string;
  engines: { node: string };
}

/** The package's `package.json`. */
export function manifestOf(origin: Origin, entries: readonly Entry[]): object {
  const exports = entries.map(
    (entry) =>
      [`./${entry.name}`, { types: `./${typesOf(entry)}`, default: `./${javascriptOf(entry)}` }] as const,
  );
  return {
    name: origin.name,
    version: origin.version,
    description:
      "Keeps names globally unique across independent cells: the client, the parts that run inside a cell, and a coordinator for tests.",
    license: origin.license ?? "UNLICENSED",
    type: "module",
    sideEffects: false,
    engines: origin.engines,
    exports: { ...Object.fromEntries(exports), "./package.json": "./package.json" },
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((peer) => [peer, { optional: true }])),
  };
}
