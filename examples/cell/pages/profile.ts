/** The public page of a person, at the route that the router knows. */
import type { Context, Hono } from "hono";
import { html } from "hono/html";
import type { Account } from "../application/accounts.ts";
import { usernameProblem } from "../application/names.ts";
import type { Html } from "../web/layout.ts";
import type { CellPages } from "./app.ts";

export function profilePages(app: Hono, pages: CellPages): void {
  app.get("/:route", async (context) => {
    const route = context.req.param("route");
    // Databases refuse some texts that no name has.
    const account =
      usernameProblem(route) === undefined ? await pages.accounts.findByRoute(route) : undefined;
    if (account === undefined) return pages.show(context, "Not here", notHere(route, pages.config.cell), 404);
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
        <dd>${context.req.header("leasehold-lookup") ?? "asking this cell itself"}</dd>
      </div>
    </dl>
  </article>`;
}

const initial = (name: string): string => String.fromCodePoint(name.codePointAt(0) ?? 0).toUpperCase();

const notHere = (route: string, cell: string): Html =>
  html`<div class="message">
    <h1>Not here</h1>
    <p class="lead">Cell ${cell} has no row for <strong>/${route}</strong>.</p>
    <p>
      If a router sent you, the name is held by a lease that is not settled yet: somebody is about to take it,
      or was killed on the way. Reconciliation will tell. If it stays like this, rows and claims have drifted
      apart.
    </p>
    <p><a class="button quiet" href="/">To the start</a></p>
  </div>`;
