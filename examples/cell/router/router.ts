/**
 * The router in front of the cells. Its own pages are below; `rules.json` says which names all other requests
 * are about, and the proxy passes them to the cells that own these names.
 */
import { Hono } from "hono";
import { compileRuleset, createProxy, type Routes } from "leasehold/router";
import type { CellProcess } from "../launcher/cell-process.ts";
import type { Timing } from "../launcher/timing.ts";
import { serveAssets } from "../web/assets.ts";
import type { PageOwner } from "../web/layout.ts";
import { originsOf } from "../web/local.ts";
import { messagePage, refusalPage } from "../web/message-page.ts";
import { secure } from "../web/security.ts";
import { failurePages } from "./failure-pages.ts";
import { landingPage } from "./landing-page.ts";
import rules from "./rules.json" with { type: "json" };

export interface RouterOptions {
  port: number;
  cells: readonly Pick<CellProcess, "id" | "address" | "isUp">[];
  /** The lookups, with a router key. */
  routes: Routes;
  coordinatorUrl: string;
  timing: Timing;
}

/** This is longer than any request to a cell takes. */
const TIMEOUT_MS = 15_000;

export function routerApp({ port, cells, routes, coordinatorUrl, timing }: RouterOptions): Hono {
  const app = new Hono();
  const owner: PageOwner = { id: "router", cells: cells.map(({ id }) => id) };
  const proxy = createProxy({
    routes,
    ruleset: compileRuleset(rules),
    boundMs: timing.lookupCacheMs,
    answerTimeoutMs: TIMEOUT_MS,
    uploadTimeoutMs: TIMEOUT_MS,
    // The example does not use TLS.
    allowLocalHttp: true,
    showRoute: true,
    failurePage: failurePages(owner, timing),
  });
  secure(app, originsOf(port));
  serveAssets(app);

  app.get("/", (context) => context.html(landingPage(owner, cells, coordinatorUrl, timing)));

  for (const cell of cells)
    app.get(`/-/status/${cell.id}`, (context) =>
      context.json({ isUp: cell.isUp }, 200, { "cache-control": "no-store" }),
    );

  app.get("/-/find", (context) => {
    const address = (context.req.query("address") ?? "").trim().replace(/^\/+/, "");
    return context.redirect(`/${address.split("/").map(encodeURIComponent).join("/")}`, 303);
  });

  app.all("*", (context) => proxy(context.req.raw));

  app.onError((error, context) => {
    const { path } = context.req;
    const refusal = refusalPage(owner, path, error);
    if (refusal !== undefined) return context.html(refusal.page, refusal.status);
    process.stderr.write(`example: router: ${error.message}\n`);
    return context.html(messagePage(owner, path, "The request failed", error.message), 500);
  });
  return app;
}
