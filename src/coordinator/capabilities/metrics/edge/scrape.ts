import type { Config } from "../../../config.ts";
import type { Envelope } from "../../../kernel/messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Env } from "../../../env.ts";
import type { Objects } from "../../../objects/objects.ts";
import type { Growth } from "../../growth/messages.ts";
import { askProgress } from "../../growth/edge/cron.ts";
import { projectionMetrics } from "./cron.ts";
import type { WaitUntil, WallClock } from "../../../runtime.ts";
import { askParts, type AskedPart } from "../../../isolate/ask-parts.ts";
import type { DirectoryCopy } from "../../../isolate/directory-copy.ts";
import { readTimeoutMs } from "../../../isolate/reach.ts";
import { RecentAnswer } from "../../../isolate/recent-answer.ts";
import { Exposition } from "./exposition.ts";
import { addDirectory, addGrowth, addLedger, addProjection, addShard } from "./samples.ts";
import { VERSION } from "../../../api/version.ts";

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
    const { config, directory } = this.#deployment;
    // The isolate's copy is good enough, and it is there if the directory does not answer.
    const view = await directory.view(waitUntil);
    if (!view.ok) return view;
    const { placement } = this.#deployment.envelope;
    const cells = [...view.value.cells.keys()];
    const scraped = cells.slice(0, config.limits.metricsCells);
    const exposition = new Exposition();
    exposition.add("leasehold_build", { version: VERSION, placement }, 1);
    const { growth } = view.value;
    exposition.add("leasehold_shards", {}, this.#deployment.shards);
    if (growth !== null) exposition.add("leasehold_growth", { phase: growth.phase }, growth.to);
    exposition.add("leasehold_cells", {}, cells.length);
    exposition.add("leasehold_cells_left_out", {}, cells.length - scraped.length);
    for (const { name: authority, expiresAtMs } of view.value.identities.authorities)
      exposition.add("leasehold_authority_expiry_timestamp_seconds", { authority }, expiresAtMs / 1_000);
    // Before the first cell is registered, no shard answers (P2).
    const shards = view.value.isPlaced ? this.#shards() : [];
    const sources = growth === null ? [] : this.#sources(growth);
    const parts = [this.#directory(), this.#d1(), ...shards, ...this.#ledgers(scraped)];
    const answers = await askParts(parts, config.limits);
    // The parts have refused a placement that is no longer in force, and have told the new one.
    if (isFirst && this.#deployment.envelope.placement !== placement) return this.#scrape(waitUntil, false);
    for (const [index, { part }] of parts.entries()) {
      const answer = answers[index];
      exposition.add("leasehold_up", { part }, Number(answer?.ok === true));
      if (answer?.ok === true) answer.value(exposition);
    }
    for (const each of await askParts(sources, config.limits)) if (each.ok) each.value(exposition);
    return ok(exposition);
  }

  #d1(): ScrapedPart {
    const { env, clock } = this.#deployment;
    return scrapedPart("d1", () => this.#projection(env, clock.now()), addProjection);
  }

  #directory(): ScrapedPart {
    const { objects, envelope } = this.#deployment;
    const part = "directory";
    return scrapedPart(
      part,
      () => objects.directory().metrics(envelope),
      (to, metrics) => addDirectory(to, part, metrics),
    );
  }

  #shards(): ScrapedPart[] {
    const { objects, envelope, config, shards } = this.#deployment;
    return Array.from({ length: shards }, (_, shard) => {
      const part = `shard-${shard}`;
      return scrapedPart(
        part,
        () => objects.shard(shard).metrics(envelope),
        (to, metrics) => addShard(to, part, String(shard), metrics, config.limits),
      );
    });
  }

  /** The shards that give names away. Whether they answer is said by their own metrics. */
  #sources({ from }: Growth): ScrapedPart[] {
    const { objects, envelope } = this.#deployment;
    return Array.from({ length: from }, (_, shard) =>
      scrapedPart(
        `shard-${shard}`,
        () => askProgress(objects, envelope, shard),
        (to, progress) => addGrowth(to, String(shard), progress),
      ),
    );
  }

  #ledgers(cells: readonly string[]): ScrapedPart[] {
    const { objects, envelope, config } = this.#deployment;
    return cells.map((cell) => {
      const part = `ledger-${cell}`;
      return scrapedPart(
        part,
        () => objects.ledger(cell).metrics(envelope),
        (to, metrics) => addLedger(to, part, cell, metrics, config.limits),
      );
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
