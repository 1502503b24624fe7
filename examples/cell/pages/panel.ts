/** The panel shows the recent activity of a cell: its leases step by step, and its reconciliations. */
import { asc } from "drizzle-orm";
import { html } from "hono/html";
import { outstandingLeases } from "leasehold/cell/postgres";
import type { CellConfig } from "../application/cell-config.ts";
import type { OpenCell } from "../application/open-cell.ts";
import type { Reconciliations } from "../protocol/reconciliations.ts";
import {
  isLeaseTimeline,
  timelineOf,
  type Notice,
  type Step,
  type LeaseTimeline,
} from "../protocol/timeline.ts";
import { basePath, type Html } from "../web/layout.ts";

const SHOWN = 10;

const states: Readonly<Record<string, string>> = { saved: "saved, to be committed", fenced: "fenced" };

interface LocalLease {
  uuid: string;
  state: string;
  createdAt: Date;
}

/** Pages also fetch the panel separately, to keep it up to date. */
export async function panelOf(
  { orm, recorder, reconciliations }: OpenCell,
  { cell, timing }: CellConfig,
): Promise<Html> {
  const { uuid, state, createdAt } = outstandingLeases;
  const leases = await orm
    .select({ uuid, state, createdAt })
    .from(outstandingLeases)
    .orderBy(asc(createdAt))
    .limit(SHOWN);
  const entries = timelineOf(recorder.events).slice(0, SHOWN);
  return html`<div class="panel" data-live="${basePath(cell)}/panel">
    <h2>Recent activity</h2>
    <div class="status">${outstanding(leases)} ${reconciled(reconciliations, timing)}</div>
    ${
      entries.length === 0
        ? html`<p class="empty">Nothing yet.</p>`
        : html`<ol class="leases">
            ${entries.map((each) => (isLeaseTimeline(each) ? leaseItem(each) : noticeItem(each)))}
          </ol>`
    }
  </div>`;
}

const leaseItem = ({ uuid, what, names, state, isRecovered, steps, atMs }: LeaseTimeline): Html =>
  html`<li class="lease" data-state="${state}">
    <h3>
      ${what}
      <span class="state">${state}</span>
      ${isRecovered ? html`<span class="state recovered">recovered</span>` : ""}
    </h3>
    <p class="meta"><code title="${uuid}">…${uuid.slice(-12)}</code> · ${clock(atMs)}</p>
    ${
      names.length === 0
        ? ""
        : html`<ul class="names">
            ${names.map(nameItem)}
          </ul>`
    }
    <ol class="steps">
      ${steps.map(stepItem)}
    </ol>
  </li>`;

const words: Readonly<Record<string, string>> = { HANDLES: "handle", EMAILS: "email", STORES: "store" };

const nameItem = ({ change, type, value }: LeaseTimeline["names"][number]): Html =>
  html`<li><span class="soft">${change} ${words[type] ?? type}</span> ${value}</li>`;

const stepItem = ({ call, text, durationMs, tone }: Step): Html =>
  html`<li data-tone="${tone}">
    <code>${call}</code>
    ${text}${durationMs === undefined ? "" : html` <span class="soft time">${durationMs} ms</span>`}
  </li>`;

const noticeItem = ({ text, atMs }: Notice): Html =>
  html`<li class="notice">${text}. <span class="soft">${clock(atMs)}</span></li>`;

function outstanding(leases: readonly LocalLease[]): Html {
  if (leases.length === 0)
    return html`<h3>Outstanding leases</h3>
      <p class="soft">There are none: every lease with saved rows is committed.</p>`;
  return html`<h3 id="outstanding">Outstanding leases</h3>
    <table class="compact" aria-labelledby="outstanding">
      <thead>
        <tr>
          <th scope="col">Lease</th>
          <th scope="col">Here</th>
          <th scope="col">Since</th>
        </tr>
      </thead>
      <tbody>
        ${leases.map(
          ({ uuid, state, createdAt }) =>
            html`<tr>
              <td><code title="${uuid}">…${uuid.slice(-12)}</code></td>
              <td>${states[state] ?? state}</td>
              <td>${clock(createdAt.getTime())}</td>
            </tr>`,
        )}
      </tbody>
    </table>`;
}

function reconciled(
  { runs, failedRuns, lastRunMs, totals }: Reconciliations,
  timing: CellConfig["timing"],
): Html {
  const counters = {
    committed: totals.committed,
    "rolled back": totals.rolledBack,
    pending: totals.pending,
    failed: totals.failed + failedRuns,
  };
  const soFar = lastRunMs === undefined ? "" : html`; ${runs} so far, the last at ${clock(lastRunMs)}`;
  return html`<h3>Reconciliation</h3>
    <dl class="counters">
      ${Object.entries(counters).map(
        ([name, count]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${count}</dd>
          </div>`,
      )}
    </dl>
    <p class="soft">
      Every ${seconds(timing.everyMs)}${soFar}. It commits leases with saved rows after
      ${seconds(timing.commitGraceMs)}, and rolls leases without rows back after ${seconds(timing.staleMs)}.
    </p>`;
}

const seconds = (ms: number): string => `${ms / 1_000} s`;

const clock = (ms: number): Html => {
  const time = new Date(ms).toTimeString().slice(0, 8);
  return html`<time datetime="${new Date(ms).toISOString()}">${time}</time>`;
};
