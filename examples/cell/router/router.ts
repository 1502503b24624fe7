/**
 * The router in front of the cells. It asks the coordinator which cell has a name, and forwards the request.
 */
import { Hono, type Context } from "hono";
import type { Client } from "leasehold/client";
import type { CellProcess } from "../launcher/cell-process.ts";
import type { Timing } from "../launcher/timing.ts";
import { serveAssets } from "../web/assets.ts";
import { basePath, type PageOwner } from "../web/layout.ts";
import { originsOf } from "../web/local.ts";
import { messagePage, refusalPage } from "../web/message-page.ts";
import { secure } from "../web/security.ts";
import { unavailablePage } from "./unavailable-page.ts";
import { forward } from "./forward.ts";
import { landingPage } from "./landing-page.ts";
import { Lookups } from "./lookups.ts";

export interface RouterOptions {
  port: number;
  cells: readonly Pick<CellProcess, "id" | "address" | "isUp">[];
  /** A client with a router key. */
  records: Pick<Client["records"], "find">;
  coordinatorUrl: string;
  timing: Timing;
}

/** The addresses whose last part is a name that the router looks up. */
const ADDRESSES = [
  { prefix: "/", type: "HANDLES" },
  { prefix: "/stores/", type: "STORES" },
] as const;

export function routerApp({ port, cells, records, coordinatorUrl, timing }: RouterOptions): Hono {
  const app = new Hono();
  const owner: PageOwner = { id: "router", cells: cells.map(({ id }) => id) };
  const lookups = new Lookups(records, timing.lookupCacheMs);
  secure(app, originsOf(port));
  serveAssets(app);

  /**
   * Forwards a request. If the cell does not answer, it is about to restart, so the answer is a page that
   * waits for it.
   */
  const proxy = async (
    context: Context,
    cell: { id: string; address: string },
    path: string,
    lookup?: string,
  ): Promise<Response> => {
    try {
      const answer = await forward(context, cell.address, path, lookup);
      answer.headers.set("leasehold-cell", cell.id);
      if (lookup !== undefined) answer.headers.set("leasehold-lookup", lookup);
      return answer;
    } catch {
      const headers = {
        "retry-after": String(Math.ceil(timing.restartMs / 1_000)),
        "leasehold-cell": cell.id,
        "cache-control": "no-store",
      };
      return context.html(unavailablePage(owner, cell.id, timing), 503, headers);
    }
  };

  app.get("/", (context) => context.html(landingPage(owner, cells, coordinatorUrl, timing)));

  for (const cell of cells) {
    const base = basePath(cell.id);
    app.get(`/-/status/${cell.id}`, (context) =>
      context.json({ isUp: cell.isUp }, 200, { "cache-control": "no-store" }),
    );
    const proxyUnchanged = (context: Context): Promise<Response> => proxy(context, cell, pathOf(context));
    app.all(base, proxyUnchanged).all(`${base}/*`, proxyUnchanged);
  }

  app.get("/-/find", (context) => {
    const address = (context.req.query("address") ?? "").trim().replace(/^\/+/, "");
    return context.redirect(`/${address.split("/").map(encodeURIComponent).join("/")}`, 303);
  });

  for (const { prefix, type } of ADDRESSES) {
    app.get(`${prefix}:name`, async (context) => {
      const value = context.req.param("name");
      const { found, ageMs } = await lookups.find({ type, value });
      if (found === undefined) {
        const text = `No cell has ${prefix}${value}.`;
        return context.html(messagePage(owner, context.req.path, "This name is free", text), 404);
      }
      const lookup =
        ageMs === 0 ? "a lookup at the coordinator" : `the router's cache, ${Math.round(ageMs)} ms old`;
      // The cell gets the name in the spelling of its claim.
      const path = `${prefix}${encodeURIComponent(found.record.bucket.value)}`;
      return proxy(context, { id: found.cell.id, address: found.cell.address }, path, lookup);
    });
  }

  app.notFound((context) =>
    context.html(
      messagePage(
        owner,
        context.req.path,
        "This page does not exist",
        "A profile is at its handle, such as /ada, and a store at /stores/lamps.",
      ),
      404,
    ),
  );
  app.onError((error, context) => {
    const { path } = context.req;
    const refusal = refusalPage(owner, path, error);
    if (refusal !== undefined) return context.html(refusal.page, refusal.status);
    const isMalformed = "code" in error && error.code === "INVALID_ARGUMENT";
    if (isMalformed)
      return context.html(
        messagePage(owner, path, "This is not a valid name", "No account can have it."),
        404,
      );
    process.stderr.write(`example: router: ${error.message}\n`);
    const text = "The coordinator does not answer, so the router can't look the name up. Try again later.";
    return context.html(messagePage(owner, path, "The name cannot be looked up", text), 503);
  });
  return app;
}

/** Returns the path and the query of the browser's request. */
function pathOf(context: Context): string {
  const { pathname, search } = new URL(context.req.url);
  return `${pathname}${search}`;
}
