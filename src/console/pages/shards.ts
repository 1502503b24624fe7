import { tableOf } from "../table.ts";
import { barsOf } from "../bars.ts";
import type { Page } from "../layout.ts";
import { html } from "../markup.ts";
import { sizeText } from "../amounts.ts";
import { factsOf, failedPage, sizeOf, type View } from "../view.ts";

type Samples = ReadonlyMap<string, number>;

/** Reads the samples of the metrics that these pages show: those with at most one label. */
function samplesIn(text: string): Samples {
  const lines = text.matchAll(/^([a-z_]+(?:\{[a-z]+="[\w -]*"\})?) (-?[\d.e+-]+)$/gm);
  return new Map([...lines].map(([, name = "", value]) => [name, Number(value)]));
}

export async function shardsPage({ api }: View): Promise<Page> {
  const metrics = await api.call("getMetrics");
  if (!metrics.ok) return failedPage("Shards", metrics.problem);
  const samples = samplesIn(metrics.value);
  const numbers = [...samples.keys()].flatMap(
    (name) => /^leasehold_up\{part="shard-(\d+)"\}$/.exec(name)?.[1] ?? [],
  );
  const shards = numbers.map(Number).toSorted((a, b) => a - b);
  const of = (family: string, shard: number): number | null =>
    samples.get(`${family}{part="shard-${shard}"}`) ?? samples.get(`${family}{shard="${shard}"}`) ?? null;
  const sizes = shards.map((shard) => ({
    name: `shard ${shard}`,
    value: of("leasehold_object_size_bytes", shard) ?? 0,
    text: sizeText(of("leasehold_object_size_bytes", shard) ?? 0),
  }));
  return {
    title: "Shards",
    main: html`${barsOf("Sizes of the shards", sizes)}
    ${tableOf(`Shards, ${shards.length}`, shards, [
      { title: "Shard", value: (shard) => shard },
      {
        title: "Answers",
        value: (shard) =>
          of("leasehold_up", shard) === 1
            ? html`<span class="good">yes</span>`
            : html`<span class="bad">no</span>`,
      },
      { title: "Size", value: (shard) => sizeOf(of("leasehold_object_size_bytes", shard)), isNumber: true },
      { title: "Limit", value: (shard) => sizeOf(of("leasehold_object_limit_bytes", shard)), isNumber: true },
      { title: "Holds", value: (shard) => of("leasehold_holds", shard), isNumber: true },
      { title: "Lookups", value: (shard) => of("leasehold_lookups_total", shard), isNumber: true },
      { title: "Waiting writes", value: (shard) => of("leasehold_waiting_writes", shard), isNumber: true },
    ])}`,
  };
}

export async function verificationPage({ api }: View): Promise<Page> {
  const metrics = await api.call("getMetrics");
  if (!metrics.ok) return failedPage("Verification", metrics.problem);
  const samples = samplesIn(metrics.value);
  return {
    title: "Verification",
    main: html`${factsOf([
        ["Slots taken", samples.get("leasehold_verification_slots_taken")],
        ["Cells that wait", samples.get("leasehold_verification_waiting")],
      ])}
      <p>
        Each cell verifies itself, and its own log has the report. Slots limit how many cells verify at the
        same time.
      </p>`,
  };
}
