/** The public profile page, at the handle that the router looks up. */
import type { Context, Hono } from "hono";
import { html } from "hono/html";
import { misdirectedResponse } from "leasehold/cell";
import type { Account } from "../application/accounts.ts";
import { handleProblem } from "../application/names.ts";
import type { Html } from "../web/layout.ts";
import { storePath } from "./addresses.ts";
import type { CellPages } from "./app.ts";
import { routedFacts } from "./routed-facts.ts";

export function profilePages(app: Hono, pages: CellPages): void {
  app.get("/:handle", async (context) => {
    const handle = context.req.param("handle");
    // Only look up possible names. PostgreSQL refuses some other texts, such as one with a NUL character.
    const account =
      handleProblem(handle) === undefined ? await pages.accounts.findByHandle(handle) : undefined;
    if (account === undefined)
      return (
        misdirectedResponse(context.req.raw.headers) ??
        pages.show(context, "Not found", notHere(`/${handle}`, pages.config.cell), 404)
      );
    return pages.show(context, account.handle, profile(account, pages.config.cell, context));
  });
}

function profile({ handle, store, createdAt }: Account, cell: string, context: Context): Html {
  const day = createdAt.toISOString().slice(0, 10);
  return html`<article class="profile">
    <p class="avatar" aria-hidden="true">${initial(handle)}</p>
    <h1>${handle}</h1>
    <p class="lead">Lives in <strong>Cell ${cell}</strong> since <time datetime="${day}">${day}</time>.</p>
    ${routedFacts(`/${handle}`, cell, context, store === null ? "" : storeFact(store))}
  </article>`;
}

const storeFact = (store: string): Html =>
  html`<div>
    <dt>Store</dt>
    <dd><a href="${storePath(store)}">/stores/${store}</a></dd>
  </div>`;

const initial = (name: string): string => String.fromCodePoint(name.codePointAt(0) ?? 0).toUpperCase();

export const notHere = (path: string, cell: string): Html =>
  html`<div class="message">
    <h1>Not found</h1>
    <p class="lead">Cell ${cell} has no row for <strong>${path}</strong>.</p>
    <p>
      You have asked this cell directly. The router knows which cell has a name, and a cell that does not have
      it answers the router with 421.
    </p>
    <p><a class="button quiet" href="/">Start page</a></p>
  </div>`;
