import { tableOf } from "../table.ts";
import {
  cellLimitsOf,
  cellStatusOf,
  expiringAuthoritiesOf,
  expiringKeysOf,
  idsOf,
  failedCopyOf,
  keyedCellsOf,
  operationsOf,
  readinessOf,
  shardsOf,
  type Observed,
  type Unread,
} from "../../../common/status/observed.ts";
import { CUT, reasonsOf, type Reason, type Topic } from "../../../common/status/reasons.ts";
import { countText, html, type Markup } from "../markup.ts";
import { durationText } from "../../../common/text/duration.ts";
import type { Answer } from "../../api/internal-api.ts";
import type { Page } from "../layout.ts";
import { allCells, NO_CELLS, cellLink, sizeOf, stateOf, type View } from "../view.ts";

/** The most stale leases that are counted. The oldest come first. */
const MAX_STALE = 100;

/** A deployment has at most 1,000 cells. */
const MAX_COPIES = 1_000;

/** With more keys, nothing is said about those that expire: the newest may be among the others. */
const MAX_KEYS = 1_000;

export async function overviewPage(view: View): Promise<Page> {
  const observed = await observe(view);
  const reasons = reasonsOf(observed);
  const { cells, cron } = observed;
  const stale = cells.reduce((sum, { stale_leases: count }) => sum + count, 0);
  const open = cells.reduce((sum, { outstanding_leases: count }) => sum + (count ?? 0), 0);
  return {
    title: "Overview",
    main: html`${verdictOf(reasons)}
      <dl class="tiles">
        ${tile("Cells", cells.length)} ${tile("Open leases", open)}
        ${tile("Stale leases", `${stale}${stale >= MAX_STALE ? "+" : ""}`)}
        ${tile("D1", observed.d1 ?? "unknown")}
        ${tile("Cron finished", cron === null ? "never" : `${durationText(cron.age_ms)} ago`)}
      </dl>
      ${tableOf(
        `Cells, ${countText(cells.length)}`,
        cells,
        [
          { title: "Cell", value: ({ cell }) => cellLink(cell) },
          { title: "Name", value: ({ name }) => name },
          { title: "State", value: ({ state }) => stateOf(state) },
          { title: "Open leases", value: ({ outstanding_leases: count }) => count, isNumber: true },
          { title: "Stale", value: ({ stale_leases: count }) => count, isNumber: true },
          { title: "Unapplied", value: ({ unapplied_decisions: count }) => count, isNumber: true },
          { title: "Size", value: ({ stored_bytes: bytes }) => sizeOf(bytes), isNumber: true },
        ],
        NO_CELLS,
      )}
      ${observed.cut ? html`<p class="soft">${CUT}</p>` : undefined}
      <p class="soft">Version ${observed.version}, placement ${observed.placement}.</p>`,
  };
}

const tile = (name: string, value: string | number): Markup =>
  html`<div>
    <dt>${name}</dt>
    <dd>${typeof value === "number" ? countText(value) : value}</dd>
  </div>`;

const verdictOf = (reasons: readonly Reason[]): Markup =>
  reasons.length === 0
    ? html`<p class="panel banner good" role="status">Green: everything that was asked works.</p>`
    : html`<section class="panel verdict" role="status">
        <h2 class="bad">
          Not green, for ${reasons.length === 1 ? "one reason" : `${reasons.length} reasons`}
        </h2>
        <ul class="reasons">
          ${reasons.map(
            ({ problem, next, about }) =>
              html`<li>
                ${problem} ${linkTo(about)}
                ${next === undefined ? undefined : html`<br /><code>${next}</code>`}
              </li>`,
          )}
        </ul>
      </section>`;

function linkTo(about: Topic): Markup {
  switch (about.part) {
    case "deployment":
      return html`<a href="/console/health">Health</a>`;
    case "cells":
      return html`<a href="/console/cells">Cells</a>`;
    case "keys":
      return html`<a href="/console/keys">Keys</a>`;
    case "shards":
      return html`<a href="/console/shards">Shards</a>`;
    case "cell":
      return html`<a href="/console/cells/${about.cell}">Cell ${about.cell}</a>`;
    case "stale_leases":
      return html`<a href="/console/leases?cell=${about.cell}&amp;stale=1"
        >Stale leases of cell ${about.cell}</a
      >`;
    case "report":
      return html`<a href="/console/cells/${about.cell}#reported">Report of cell ${about.cell}</a>`;
  }
}

/** Asks what `leasehold status` asks. */
async function observe({ api, session, nowMs }: View): Promise<Observed> {
  const unread: Unread[] = [];
  const read = <T>(what: string, answer: Answer<T>): T | undefined => {
    if (answer.ok) return answer.value;
    unread.push({ what, why: answer.problem.detail });
    return undefined;
  };
  const [health, ready, listed, stale, allLimits, copies, keys, identities, growth, operations] =
    await Promise.all([
      api.call("getHealth"),
      api.call("getReadiness"),
      allCells(api),
      api.call("listStaleLeases", { query: { page_size: String(MAX_STALE) } }),
      api.call("listLimits"),
      api.call("listFailedCopies", { query: { page_size: String(MAX_COPIES) } }),
      api.call("listKeys", { query: { page_size: String(MAX_KEYS) } }),
      api.call("getIdentities"),
      api.call("getGrowth"),
      api.call("listOperations"),
    ]);
  const { version = null, placement = null } = health.ok ? health.value : {};
  const listedKeys = read("The list of keys", keys);
  const allKeys = listedKeys?.next_page_token === "" ? listedKeys.keys : undefined;
  const keyed = allKeys && keyedCellsOf(allKeys, nowMs);
  const leases = read("The list of stale leases", stale)?.leases ?? [];
  const cells = read("The list of cells", listed);
  return {
    url: "",
    version,
    placement,
    ...readinessOf(
      ready.ok ? 200 : ready.problem.status,
      ready.ok ? { ...ready.value } : { ...ready.problem },
      nowMs,
    ),
    cells: (cells ?? []).map((cell) => cellStatusOf(cell, leases, keyed)),
    failed_copies: (read("The list of failed copies", copies)?.copies ?? []).map(failedCopyOf),
    expiring_keys: allKeys === undefined ? [] : expiringKeysOf(allKeys, nowMs, cells && idsOf(cells)),
    expiring_authorities: expiringAuthoritiesOf(
      read("The identities", identities)?.authority_expiries ?? [],
      nowMs,
    ),
    cut: [stale, copies].some((list) => list.ok && list.value.next_page_token !== ""),
    unread,
    ...shardsOf(read("The number of shards", growth), nowMs),
    operations: operationsOf(read("The list of operations", operations)?.operations ?? [], nowMs),
    // It takes a call of every part. `leasehold status` makes it.
    upgrade: null,
    limits: cellLimitsOf(read("The list of limits", allLimits)?.limits ?? []),
    // Access renews its assertions by itself.
    key:
      session.email === undefined
        ? { role: session.role, expires_in_ms: session.keyExpiresAtMs - nowMs }
        : null,
  };
}
