import type { Config } from "../../../config.ts";
import type { Envelope } from "../../../kernel/messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Env } from "../../../env.ts";
import type { Objects } from "../../../objects/objects.ts";
import { readGrowth } from "../../growth/edge/metrics.ts";
import { projectionMetrics } from "./cron.ts";
import type { WaitUntil, WallClock } from "../../../runtime.ts";
import { askParts, type AskedPart, readTimeoutMs } from "../../../isolate/reach.ts";
import type { DirectoryCopy } from "../../../isolate/directory-copy.ts";
import { RecentAnswer } from "../../../isolate/recent-answer.ts";
import { Exposition } from "./exposition.ts";
import type { Sources } from "./family.ts";

/** The parts of a deployment that a scrape needs. */
export interface ScrapedDeployment {
  env: Env;
  config: Config;
  clock: WallClock;
  envelope: Envelope;
  shards: number;
  directory: Pick<DirectoryCopy, "view">;
  objects: Objects;
}

/** How long scrapes share one answer, so that several scrapers cost no more than one. */
const KEEP_MS = 15_000;

/** Adds what a part has answered. */
type AddSamples = (to: Exposition) => void;

interface ScrapedPart extends AskedPart<AddSamples> {
  /** The part's id in the API. */
  part: string;
}

/**
 * Asks the directory, every shard and the ledgers of at most `metricsCells` cells for what they have counted,
 * and D1 for what the cron has left there. A part that does not answer is a sample, and fails nothing else.
 */
export class Scrape {
  readonly #deployment: ScrapedDeployment;
  readonly #projection: typeof projectionMetrics;
  readonly #shared: RecentAnswer<Exposition>;

  constructor(deployment: ScrapedDeployment, projection = projectionMetrics) {
    this.#deployment = deployment;
    this.#projection = projection;
    this.#shared = new RecentAnswer(deployment.clock, {
      name: "the scrape of another request",
      keepMs: KEEP_MS,
      timeoutMs: 2 * readTimeoutMs(deployment.config.limits),
    });
  }

  read(waitUntil: WaitUntil): Promise<Result<Exposition>> {
    return this.#shared.get(waitUntil, () => this.#scrape(waitUntil));
  }

  async #scrape(waitUntil: WaitUntil, isFirst = true): Promise<Result<Exposition>> {
    const { config, directory, objects } = this.#deployment;
    const { limits } = config;
    // The isolate's copy is good enough, and it is there if the directory does not answer.
    const view = await directory.view(waitUntil);
    if (!view.ok) return view;
    const { shards } = this.#deployment;
    const { placement } = this.#deployment.envelope;
    const cells = [...view.value.cells.keys()];
    const scraped = cells.slice(0, limits.metricsCells);
    const exposition = new Exposition();
    const cellsLeftOut = cells.length - scraped.length;
    exposition.add("deployment", { placement, shards, cellsLeftOut, view: view.value }, limits);
    // Before the first cell is registered, no shard answers (P2).
    const asked = view.value.isPlaced ? this.#shards() : [];
    const parts = [this.#directory(), this.#d1(), ...asked, ...this.#ledgers(scraped)];
    const answers = await askParts(parts, limits);
    // The parts have refused a placement that is no longer in force, and have told the new one.
    const { envelope } = this.#deployment;
    if (isFirst && envelope.placement !== placement) return this.#scrape(waitUntil, false);
    for (const [index, { part }] of parts.entries()) {
      const answer = answers[index];
      exposition.add("answered", answer?.ok === true, limits, part);
      if (answer?.ok === true) answer.value(exposition);
    }
    exposition.add("growth", await readGrowth({ objects, envelope, limits }, view.value.growth), limits);
    return ok(exposition);
  }

  #d1(): ScrapedPart {
    const { env, clock, config } = this.#deployment;
    const read = () => this.#projection(env, clock.now());
    return scrapedPart("d1", read, (to, metrics) => to.add("d1", metrics, config.limits));
  }

  #directory(): ScrapedPart {
    const { objects, envelope } = this.#deployment;
    return this.#object("directory", "directory", () => objects.directory().metrics(envelope));
  }

  #shards(): ScrapedPart[] {
    const { objects, envelope, shards } = this.#deployment;
    return Array.from({ length: shards }, (_, shard) =>
      this.#object(`shard-${shard}`, "shard", () => objects.shard(shard).metrics(envelope), String(shard)),
    );
  }

  #ledgers(cells: readonly string[]): ScrapedPart[] {
    const { objects, envelope } = this.#deployment;
    return cells.map((cell) =>
      this.#object(`ledger-${cell}`, "ledger", () => objects.ledger(cell).metrics(envelope), cell),
    );
  }

  #object<Name extends "directory" | "shard" | "ledger">(
    part: string,
    source: Name,
    ask: () => Promise<Result<Sources[Name]>>,
    own?: string,
  ): ScrapedPart {
    const { limits } = this.#deployment.config;
    return scrapedPart(part, ask, (to, metrics) => {
      to.add("part", metrics, limits, part);
      to.add(source, metrics, limits, own);
    });
  }
}

function scrapedPart<Metrics>(
  part: string,
  ask: () => Promise<Result<Metrics>>,
  add: (to: Exposition, metrics: Metrics) => void,
): ScrapedPart {
  return {
    part,
    name: part,
    ask: async () => {
      const reply = await ask();
      return reply.ok ? ok((to: Exposition) => add(to, reply.value)) : reply;
    },
  };
}
