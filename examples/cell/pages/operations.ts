/** The operations page: makes rows and claims disagree, and verifies them. */
import type { Hono } from "hono";
import { html } from "hono/html";
import type { Account } from "../application/accounts.ts";
import { drifts, isDrift, plantDrift } from "../application/drift.ts";
import { verify, type Verification } from "../application/verification.ts";
import type { Html } from "../web/layout.ts";
import { readForm } from "../web/read-form.ts";
import type { CellPages } from "./app.ts";
import { findPerson } from "./person.ts";

export function operationsPages(app: Hono, pages: CellPages): void {
  const { base, accounts, open, config } = pages;
  const path = `${base}/operations`;

  const page = async (news: Html | "" = ""): Promise<Html> => {
    const people = await accounts.list();
    return html`<h1>Operations of Cell ${config.cell}</h1>
      <p class="lead">
        This cell has the rows, and the coordinator has the claims. Here you can make them disagree, and then
        run a verification that finds the drift.
      </p>
      ${news} ${driftForm(path, people)} ${verifyForm(path)}`;
  };

  app.get(path, async (context) => pages.show(context, "Operations", await page()));

  app.post(`${path}/drift`, async (context) => {
    const { drift, person } = await readForm(context, ["drift", "person"]);
    const found = await findPerson(person, accounts);
    if (found === undefined || !isDrift(drift)) return context.redirect(path, 303);
    const done = await plantDrift(open, drift, found);
    return pages.show(
      context,
      "Drift was caused",
      await page(html`<p class="done" role="status">${done}</p>`),
    );
  });

  app.post(`${path}/verify`, async (context) => {
    const { apply } = await readForm(context, ["apply"]);
    const found = await verify(open.cell, apply === "yes");
    return pages.show(context, "Verification", await page(verification(found)));
  });
}

function driftForm(path: string, people: readonly Account[]): Html {
  const form = html`<form method="post" action="${path}/drift">
    <div class="field">
      <label for="person">Account</label>
      <select id="person" name="person">
        ${people.map(({ id, handle }) => html`<option value="${id}">${handle}</option>`)}
      </select>
    </div>
    <fieldset>
      <legend>Kind of drift</legend>
      ${Object.entries(drifts).map(
        ([value, text], at) =>
          html`<label class="choice"
            ><input type="radio" name="drift" value="${value}" ${at === 0 ? "checked" : ""} />${text}</label
          >`,
      )}
    </fieldset>
    <p class="actions"><button class="button">Cause drift</button></p>
  </form>`;
  return html`<section class="card" aria-labelledby="drift">
    <h2 id="drift">Cause drift</h2>
    <p>This changes the database or the coordinator without the cell, as a bug or a manual change would.</p>
    ${people.length === 0 ? html`<p class="empty">Sign up first.</p>` : form}
  </section>`;
}

const verifyForm = (path: string): Html =>
  html`<section class="card" aria-labelledby="verify">
    <h2 id="verify">Verify</h2>
    <p>
      This compares every claimable row with every claim of this cell. In production, a job runs it regularly.
    </p>
    <form method="post" action="${path}/verify" class="actions">
      <button class="button" name="apply" value="no">Verify</button>
      <button class="button quiet" name="apply" value="yes">Verify and repair</button>
    </form>
  </section>`;

const item = ({ kind, name, row, end }: Verification["items"][number]): Html =>
  html`<li><span class="state">${kind}</span> ${name} <span class="soft">${row}; ${end}</span></li>`;

function verification({ headline, counts, items, text }: Verification): Html {
  return html`<section class="card" aria-labelledby="report" role="status">
    <h2 id="report">Report</h2>
    <dl class="counters">
      ${counts.map(
        ([name, count]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${count}</dd>
          </div>`,
      )}
    </dl>
    <p>${headline}</p>
    <ul class="names">
      ${items.map(item)}
    </ul>
    <pre tabindex="0">${text}</pre>
  </section>`;
}
