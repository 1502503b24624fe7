import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { countReads, type CallCounts } from "./count-reads.ts";
import { plantDrift, type Drift } from "./drift.ts";
import { claimedNames, namesToFill } from "./names.ts";
import type { Options, Part } from "./options.ts";
import type { Key, Result, Results } from "./results.ts";
import { Site } from "./site.ts";

const DRIFTS: readonly Drift[] = [0, 1_000, 10];

interface Outputs {
  results: Results;
  keepCounts: (counts: readonly CallCounts[]) => void;
}

/** Runs the parts one after the other, each on a new site, and stores their results. */
export class Measurement {
  readonly #options: Options;
  readonly #outputs: Outputs;
  readonly #commit: string;
  readonly #root: string;
  readonly #print: (line: string) => void;
  #site: Site | undefined;

  constructor(
    options: Options,
    outputs: Outputs,
    commit: string,
    root: string,
    print: (line: string) => void,
  ) {
    this.#options = options;
    this.#outputs = outputs;
    this.#commit = commit;
    this.#root = root;
    this.#print = print;
  }

  async run(): Promise<void> {
    const measures: Record<Part, () => Promise<void>> = {
      counts: () => this.#counts(),
      verify: () => this.#verify(),
      backfill: () => this.#backfill(),
    };
    for (const part of this.#options.parts) await measures[part]();
  }

  async stop(): Promise<void> {
    await this.#site?.stop();
    this.#site = undefined;
  }

  async #counts(): Promise<void> {
    const root = this.#makeFolder("counts");
    const counts = await countReads(root);
    this.#outputs.keepCounts(counts);
    for (const { call, claims, messages, rowsRead } of counts)
      this.#print(`${call} of ${claims}: ${messages} messages, ${rowsRead} rows read`);
    await this.#end("counts");
  }

  async #verify(): Promise<void> {
    const { rows } = this.#options;
    const site = await this.#start("verify", rows, claimedNames(rows));
    this.#keep(await site.export());
    for (const drift of DRIFTS) {
      const planted = drift === 0 ? 0 : await plantDrift(site.database, drift);
      this.#print(`drift: ${planted} rows`);
      // The dry runs come first, because they leave the drift in place.
      const found = new Set<number>();
      for (const digests of [true, false])
        found.add(this.#keep(await this.#dry(site, { part: "compare", drift, digests })));
      if (found.size !== 1 || !found.has(planted))
        throw new Error(`${planted} rows have drifted, but the dry runs found ${[...found].join(" and ")}`);
      if (planted === 0) continue;
      this.#keep(
        await site.verify({ part: "repair", drift, digests: true }, { apply: true, printsProgress: false }),
      );
      for (const digests of [true, false]) {
        const left = this.#keep(await this.#dry(site, { part: "again", drift, digests }));
        if (left !== 0) throw new Error(`${left} drifted claims remain after the repair`);
      }
    }
    await this.#end("verify");
  }

  async #backfill(): Promise<void> {
    const names = namesToFill(this.#options.namesFile, this.#options.backfilled);
    const site = await this.#start("backfill", 0, names);
    const key: Key = { part: "backfill", drift: 0, digests: true };
    const filled = await site.verify(key, { apply: true, printsProgress: true });
    this.#keep({ ...filled, isGivenList: this.#options.namesFile !== undefined });
    await this.#end("backfill");
  }

  async #start(name: Part, claims: number, names: Iterable<string>): Promise<Site> {
    const startedMs = performance.now();
    const root = this.#makeFolder(name);
    const site = await Site.start(root, claims);
    this.#site = site;
    const rows = await site.database.load(names);
    this.#print(
      `${rows} rows and ${claims} claims in ${((performance.now() - startedMs) / 1_000).toFixed(0)} s`,
    );
    return site;
  }

  #makeFolder(name: Part): string {
    const folder = join(this.#root, name);
    mkdirSync(folder);
    // PostgreSQL runs as a user of its own, who must be able to reach its folder.
    for (const path of [this.#root, folder]) chmodSync(path, 0o755);
    return folder;
  }

  /** Stops the site and deletes its folder, because the next part needs the disk space. */
  async #end(name: Part): Promise<void> {
    await this.stop();
    rmSync(join(this.#root, name), { recursive: true, force: true, maxRetries: 5 });
  }

  #dry(site: Site, key: Key): Promise<Omit<Result, "commit">> {
    return site.verify(key, { apply: false, printsProgress: false });
  }

  /** Stores the result, and returns how many drifted claims it found. */
  #keep(result: Omit<Result, "commit">): number {
    this.#outputs.results.add({ ...result, commit: this.#commit });
    const { part, drift, digests, rows, seconds, counts, calls } = result;
    const what = [part, drift === 0 ? "" : `1 in ${drift}`, digests ? "with digests" : ""]
      .filter(Boolean)
      .join(", ");
    const records = counts?.records ?? rows;
    this.#print(
      `${what}: ${rows} rows in ${seconds.toFixed(1)} s, ${records} records; ${JSON.stringify(calls)}`,
    );
    return counts === undefined ? 0 : counts.missing + counts.different + counts.extra;
  }
}
