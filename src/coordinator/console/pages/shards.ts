import { tableOf } from "../table.ts";
import { barsOf } from "../bars.ts";
import type { Page } from "../layout.ts";
import type { AnswerOf } from "../../api/internal-api.ts";
import { html, type Markup, type Part, countText, sizeText } from "../markup.ts";
import { samplesIn, failedPage, sizeOf, whenOf, type View } from "../view.ts";

export async function shardsPage({ api, nowMs }: View): Promise<Page> {
  const [metrics, growth] = await Promise.all([api.call("getMetrics"), api.call("getGrowth")]);
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
  const lookups = shards.map((shard) => ({
    name: `shard ${shard}`,
    value: of("leasehold_lookups_total", shard) ?? 0,
  }));
  return {
    title: "Shards",
    main: html`${growth.ok && growth.value.growth !== null ? growthOf(growth.value.growth) : undefined}
      <div class="beside">
        ${barsOf("Sizes of the shards", sizes)}
        ${barsOf("Lookups of each shard since its instance started", lookups)}
      </div>
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
        {
          title: "Limit",
          value: (shard) => sizeOf(of("leasehold_object_limit_bytes", shard)),
          isNumber: true,
        },
        { title: "Holds", value: (shard) => of("leasehold_holds", shard), isNumber: true },
        { title: "Holds limit", value: (shard) => of("leasehold_holds_limit", shard), isNumber: true },
        { title: "Lookups", value: (shard) => of("leasehold_lookups_total", shard), isNumber: true },
        { title: "Waiting writes", value: (shard) => of("leasehold_waiting_writes", shard), isNumber: true },
      ])}
      ${tableOf("Last scrub of each shard", shards, [
        { title: "Shard", value: (shard) => shard },
        {
          title: "Ended",
          value: (shard) => endOf(of("leasehold_scrub_end_timestamp_seconds", shard), nowMs),
        },
        { title: "Findings", value: (shard) => findingsOf(of("leasehold_scrub_findings", shard)) },
        { title: "Rows", value: (shard) => of("leasehold_scrub_rows", shard), isNumber: true },
        { title: "Not compared", value: (shard) => of("leasehold_scrub_unchecked", shard), isNumber: true },
      ])}
      <p class="soft">Findings are rows that break a rule. <code>leasehold scrub --help</code></p>`,
  };
}

const endOf = (endS: number | null, nowMs: number): Part =>
  endS === null ? null : whenOf(new Date(endS * 1_000).toISOString(), nowMs);

const findingsOf = (count: number | null): Part =>
  count === null || count === 0 ? count : html`<strong class="bad">${countText(count)}</strong>`;

type Growth = NonNullable<AnswerOf<"getGrowth">["growth"]>;

const growthOf = ({ from, to, phase, started_at: startedAt, can_be_cut: isReady, sources }: Growth): Markup =>
  html`<section class="panel">
      <h2>Growing from ${from} to ${to} shards: ${phase}</h2>
      <p>
        Started at ${startedAt}.
        ${
          phase === "copying"
            ? isReady
              ? "All names are copied. The growth waits for its cut."
              : "Names are copied. Nothing is served differently yet."
            : "The new shards are in use."
        }
        <br /><code>${`leasehold shards grow --to ${to} --reason TEXT`}</code>
      </p>
    </section>
    ${tableOf("Shards that give names away", sources, [
      { title: "Shard", value: ({ shard }) => shard },
      { title: "State", value: ({ state }) => state ?? "no answer" },
      { title: "Copied", value: ({ copied }) => copied, isNumber: true },
      { title: "Waiting", value: ({ waiting }) => waiting, isNumber: true },
      { title: "Deleted", value: ({ cleaned }) => cleaned, isNumber: true },
    ])}`;
