/** The public profile page, at the route that the router looks up. */
import type { Context, Hono } from "hono";
import { html } from "hono/html";
import type { Account } from "../application/accounts.ts";
import { usernameProblem } from "../application/names.ts";
import type { Html } from "../web/layout.ts";
import type { CellPages } from "./app.ts";

export function profilePages(app: Hono, pages: CellPages): void {
  app.get("/:route", async (context) => {
    const route = context.req.param("route");
    // Only look up possible names. PostgreSQL refuses some other texts, such as one with a NUL character.
    const account =
      usernameProblem(route) === undefined ? await pages.accounts.findByRoute(route) : undefined;
    if (account === undefined)
      return pages.show(context, "Not found", notHere(route, pages.config.cell), 404);
    return pages.show(context, account.username, profile(account, pages.config.cell, context));
  });
}

function profile({ username, route, createdAt }: Account, cell: string, context: Context): Html {
  const day = createdAt.toISOString().slice(0, 10);
  return html`<article class="profile">
    <p class="avatar" aria-hidden="true">${initial(username)}</p>
    <h1>${username}</h1>
    <p class="lead">Lives in <strong>Cell ${cell}</strong> since <time datetime="${day}">${day}</time>.</p>
    <dl class="facts">
      <div>
        <dt>Route</dt>
        <dd>/${route}</dd>
      </div>
      <div>
        <dt>Served by</dt>
        <dd>Cell ${cell}</dd>
      </div>
      <div>
        <dt>Found by</dt>
        <dd>${context.req.header("leasehold-lookup") ?? "a request to this cell directly"}</dd>
      </div>
    </dl>
  </article>`;
}

const initial = (name: string): string => String.fromCodePoint(name.codePointAt(0) ?? 0).toUpperCase();

const notHere = (route: string, cell: string): Html =>
  html`<div class="message">
    <h1>Not found</h1>
    <p class="lead">Cell ${cell} has no row for <strong>/${route}</strong>.</p>
    <p>
      If the router sent you here, an open lease holds the name: a sign-up is running, or its process was
      killed. Reconciliation decides such a lease. If this page does not change, rows and claims disagree.
    </p>
    <p><a class="button quiet" href="/">Start page</a></p>
  </div>`;
