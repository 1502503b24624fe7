/** A person's store: its part of the account page, and its own page, at the name that the router looks up. */
import type { Context, Hono } from "hono";
import { html } from "hono/html";
import { misdirectedResponse } from "leasehold/cell";
import type { Account } from "../application/accounts.ts";
import { MAX_STORE, storeProblem, storeRule } from "../application/names.ts";
import { problemsOf } from "../application/problems.ts";
import { input, problemSummary, type Field, type Problems } from "../web/forms.ts";
import type { Html } from "../web/layout.ts";
import { readForm } from "../web/read-form.ts";
import { profilePath, storePath } from "./addresses.ts";
import type { CellPages } from "./app.ts";
import { signedIn } from "./person.ts";
import { notHere } from "./profile.ts";
import { routedFacts } from "./routed-facts.ts";

/** What somebody typed into the form of a store, and what is wrong with it. */
export interface StoreForm {
  name: string;
  problems: Problems;
}

export function storePages(
  app: Hono,
  pages: CellPages,
  accountPage: (person: Account, form: StoreForm) => Html,
): void {
  const { base, accounts, config } = pages;

  app.post(`${base}/account/open-store`, async (context) => {
    const person = await signedIn(context, config.cell, accounts);
    if (person === undefined) return context.redirect(base, 303);
    const { name } = await readForm(context, ["name"]);
    const showProblems = (problems: Problems): Promise<Response> =>
      pages.show(context, "No store was opened", accountPage(person, { name, problems }), 422);
    const problem = storeProblem(name);
    if (problem !== undefined) return showProblems(new Map([["name", problem]]));
    try {
      await accounts.openStore(person.id, name);
      return context.redirect(`${base}/account?done=store-opened`, 303);
    } catch (error) {
      return showProblems(problemsOf(error));
    }
  });

  app.post(`${base}/account/close-store`, async (context) => {
    const person = await signedIn(context, config.cell, accounts);
    if (person === undefined) return context.redirect(base, 303);
    await accounts.closeStore(person.id);
    return context.redirect(`${base}/account?done=store-closed`, 303);
  });

  app.get("/stores/:name", async (context) => {
    const name = context.req.param("name");
    const owner = storeProblem(name) === undefined ? await accounts.findByStore(name) : undefined;
    if (owner === undefined || owner.store === null)
      return (
        misdirectedResponse(context.req.raw.headers) ??
        pages.show(context, "Not found", notHere(`/stores/${name}`, config.cell), 404)
      );
    return pages.show(context, owner.store, storePage(owner.store, owner, config.cell, context));
  });
}

export function storeSection(base: string, { store }: Account, { name, problems }: StoreForm): Html {
  const field: Field = {
    name: "name",
    label: "Store name",
    hint: `It ${storeRule}. All cells share the names of stores, too.`,
    value: name,
    maxLength: MAX_STORE,
    autocomplete: "off",
  };
  const form = html`${problemSummary("No store was opened", [field], problems)}
    <form method="post" action="${base}/account/open-store" novalidate>
      ${input(field, problems)}
      <p class="actions"><button class="button">Open the store</button></p>
    </form>`;
  return html`<section class="card" aria-labelledby="store">
    <h2 id="store">Store</h2>
    ${store === null ? form : openStore(base, store)}
  </section>`;
}

const openStore = (base: string, store: string): Html =>
  html`<p>Your store is at <a href="${storePath(store)}">/stores/${store}</a>.</p>
    <form method="post" action="${base}/account/close-store">
      <p class="actions"><button class="button quiet">Close the store</button></p>
    </form>`;

function storePage(store: string, { handle }: Account, cell: string, context: Context): Html {
  return html`<article class="profile">
    <h1>${store}</h1>
    <p class="lead">A store of <a href="${profilePath(handle)}">${handle}</a>. It has nothing to sell yet.</p>
    ${routedFacts(`/stores/${store}`, cell, context)}
  </article>`;
}
