/** Uses the package as its users do: packed, installed in a project of its own, imported and run. */
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { peers, type Entry } from "./entries.ts";
import { run } from "./run.ts";

const npm = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];

/** Packs the package in `folder` into `target`, and returns the tarball's path. */
export function packSdk(folder: string, target: string): string {
  return join(target, run("npm", ["pack", ...npm, "--pack-destination", target], folder).trim());
}

/**
 * Makes a project that has only the package. Dependencies of the package would have to come from the network.
 */
export function installSdk(tarball: string, project: string): void {
  mkdirSync(project, { recursive: true });
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({ name: "consumer", private: true, type: "module" }),
  );
  run("npm", ["install", ...npm, tarball], project);
  const installed = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."));
  if (installed.join() !== "leasehold")
    throw new Error(`installed besides: ${installed.filter((name) => name !== "leasehold").join(", ")}`);
}

/** Links the repository's peers, and the types that the compiler needs, into the project. */
export function linkPeers(root: string, project: string): void {
  for (const name of [...Object.keys(peers), "@types/node", "@types/pg", "vitest"]) {
    const path = join(project, "node_modules", name);
    if (existsSync(path)) continue;
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(root, "node_modules", name), path);
  }
}

/** Returns the names of the values that each entry exports. */
export function importSdk(project: string, entries: readonly Entry[]): Record<string, string[]> {
  const specifiers = entries.map(({ name }) => `leasehold/${name}`);
  const script = `const exports = {};
    for (const name of ${JSON.stringify(specifiers)}) exports[name] = Object.keys(await import(name));
    console.log(JSON.stringify(exports));`;
  return JSON.parse(
    run(process.execPath, ["--no-warnings", "--input-type=module", "-e", script], project),
  ) as Record<string, string[]>;
}

/** Runs the package's program as npm links it, and returns what it prints. */
export const runProgram = (project: string, ...args: readonly string[]): string =>
  run(join(project, "node_modules/.bin/leasehold"), args, project).trim();

const SMOKE = `
  import { AlreadyClaimedError, createClient } from "leasehold/client";
  import { startTestCoordinator } from "leasehold/testing";

  const coordinator = await startTestCoordinator();
  const { url, fetch, keys } = coordinator;
  const clientOf = (cell) => createClient({ url, fetch, key: keys.cell(cell), cell });
  const of = { subject: { type: "USER", id: 7 }, source: { type: "RAILS_TABLE_USERS", id: 7 } };
  const batch = { creates: [{ bucket: { type: "USERNAMES", value: "Grace" }, ...of }] };
  const { uuid } = await clientOf("1").leases.begin(batch);
  const { state } = await clientOf("1").leases.commit(uuid);
  const refusal = await clientOf("2").leases.begin(batch).catch((error) => error);
  await coordinator.close();
  console.log(state, refusal instanceof AlreadyClaimedError);
`;

/**
 * Runs the packed client against the packed coordinator for tests. Returns the state of a lease, and whether
 * another cell was refused.
 */
export const leaseWithSdk = (project: string): string =>
  run(process.execPath, ["--no-warnings", "--input-type=module", "-e", SMOKE], project).trim();
