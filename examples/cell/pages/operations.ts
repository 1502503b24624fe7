/** Bringing rows and claims apart, and finding out. */
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
        Rows are this cell's, claims are the coordinator's. Here you can part them on purpose, and see it
        found.
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
      "Drift is planted",
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
      <label for="person">Whose name?</label>
      <select id="person" name="person">
        ${people.map(({ id, username }) => html`<option value="${id}">${username}</option>`)}
      </select>
    </div>
    <fieldset>
      <legend>What to do to it</legend>
      ${Object.entries(drifts).map(
        ([value, text], at) =>
          html`<label class="choice"
            ><input type="radio" name="drift" value="${value}" ${at === 0 ? "checked" : ""} />${text}</label
          >`,
      )}
    </fieldset>
    <p class="actions"><button class="button">Plant drift</button></p>
  </form>`;
  return html`<section class="card" aria-labelledby="drift">
    <h2 id="drift">Plant drift</h2>
    <p>What happens when somebody writes to the database behind the cell's back, or to the coordinator.</p>
    ${people.length === 0 ? html`<p class="empty">Sign somebody up first.</p>` : form}
  </section>`;
}

const verifyForm = (path: string): Html =>
  html`<section class="card" aria-labelledby="verify">
    <h2 id="verify">Verify</h2>
    <p>
      Compares every claimed row with every claim of this cell. A cell does this by itself a few times a day.
    </p>
    <form method="post" action="${path}/verify" class="actions">
      <button class="button" name="apply" value="no">Verify</button>
      <button class="button quiet" name="apply" value="yes">Verify and repair</button>
    </form>
  </section>`;

function verification({ headline, counts, items, text }: Verification): Html {
  return html`<section class="card" aria-labelledby="report" role="status">
    <h2 id="report">The report</h2>
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
      ${items.map(({ kind, name, row, end }) => html`<li><span class="state">${kind}</span> ${name} <span class="soft">${row}; ${end}</span></li>`)}
    </ul>
    <pre tabindex="0">${text}</pre>
  </section>`;
}
