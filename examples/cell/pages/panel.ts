/** What just happened in this cell: its leases, told step by step, and what reconciliation did. */
import { asc } from "drizzle-orm";
import { html } from "hono/html";
import { outstandingLeases } from "leasehold/cell/postgres";
import type { Job } from "../application/job.ts";
import type { OpenCell } from "../application/open-cell.ts";
import type { Reconciliations } from "../protocol/reconciliations.ts";
import { isStory, storiesOf, type Notice, type Step, type Story } from "../protocol/stories.ts";
import { basePath, type Html } from "../web/layout.ts";

const SHOWN = 10;

const states: Readonly<Record<string, string>> = { saved: "saved, to be committed", fenced: "fenced off" };

interface LocalLease {
  uuid: string;
  state: string;
  createdAt: Date;
}

/** Also asked for by itself, to keep a page that is open up to date. */
export async function panelOf(
  { orm, recorder, reconciliations }: OpenCell,
  { cell, pace }: Job,
): Promise<Html> {
  const { uuid, state, createdAt } = outstandingLeases;
  const leases = await orm
    .select({ uuid, state, createdAt })
    .from(outstandingLeases)
    .orderBy(asc(createdAt))
    .limit(SHOWN);
  const told = storiesOf(recorder.events).slice(0, SHOWN);
  return html`<div class="panel" data-live="${basePath(cell)}/panel">
    <h2>What just happened</h2>
    <div class="standing">${outstanding(leases)} ${reconciled(reconciliations, pace)}</div>
    ${
      told.length === 0
        ? html`<p class="empty">Nothing yet.</p>`
        : html`<ol class="stories">
            ${told.map((each) => (isStory(each) ? storyItem(each) : noticeItem(each)))}
          </ol>`
    }
  </div>`;
}

const storyItem = ({ uuid, what, names, state, isHealed, steps, atMs }: Story): Html =>
  html`<li class="story" data-state="${state}">
    <h3>
      ${what}
      <span class="state">${state}</span> ${isHealed ? html`<span class="state healed">healed</span>` : ""}
    </h3>
    <p class="meta"><code title="${uuid}">…${uuid.slice(-12)}</code> · ${clock(atMs)}</p>
    ${
      names.length === 0
        ? ""
        : html`<ul class="names">
            ${names.map(({ change, type, value }) => html`<li><span class="soft">${change} ${words[type] ?? type}</span> ${value}</li>`)}
          </ul>`
    }
    <ol class="steps">
      ${steps.map(stepItem)}
    </ol>
  </li>`;

const words: Readonly<Record<string, string>> = { USERNAMES: "username", EMAILS: "email", ROUTES: "route" };

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
      <p class="soft">No saved rows wait for the commit of their lease.</p>`;
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

function reconciled({ runs, failedRuns, lastRunMs, totals }: Reconciliations, pace: Job["pace"]): Html {
  const counters = {
    committed: totals.committed,
    "rolled back": totals.rolledBack,
    pending: totals.pending,
    failed: totals.failed + failedRuns,
  };
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
      Every
      ${seconds(pace.everyMs)}${lastRunMs === undefined ? "" : html`; ${runs} so far, the last at ${clock(lastRunMs)}`}.
      Saved leases are committed after ${seconds(pace.commitGraceMs)}; leases without rows are given up after
      ${seconds(pace.staleMs)}.
    </p>`;
}

const seconds = (ms: number): string => `${ms / 1_000} s`;

const clock = (ms: number): Html => {
  const time = new Date(ms).toTimeString().slice(0, 8);
  return html`<time datetime="${new Date(ms).toISOString()}">${time}</time>`;
};
