/** In front of the cells: asks the coordinator whose a name is, and passes the request on. */
import { Hono, type Context } from "hono";
import type { Client } from "leasehold/client";
import type { CellProcess } from "../launcher/cell-process.ts";
import type { Pace } from "../launcher/pace.ts";
import { serveAssets } from "../web/assets.ts";
import { basePath, type Place } from "../web/layout.ts";
import { originsOf } from "../web/local.ts";
import { messagePage, refusalPage } from "../web/message.ts";
import { secure } from "../web/security.ts";
import { awayPage } from "./away.ts";
import { forward } from "./forward.ts";
import { landing } from "./landing.ts";
import { Lookups } from "./lookups.ts";

export interface RouterOptions {
  port: number;
  cells: readonly Pick<CellProcess, "id" | "address" | "isUp">[];
  /** With a router's key. */
  records: Pick<Client["records"], "find">;
  coordinatorUrl: string;
  pace: Pace;
}

export function routerApp({ port, cells, records, coordinatorUrl, pace }: RouterOptions): Hono {
  const app = new Hono();
  const place: Place = { id: "router", cells: cells.map(({ id }) => id) };
  const lookups = new Lookups(records, pace.routeCacheMs);
  secure(app, originsOf(port));
  serveAssets(app);

  /** A cell that does not answer is coming back. */
  const passOn = async (
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
        "retry-after": String(Math.ceil(pace.restartMs / 1_000)),
        "leasehold-cell": cell.id,
        "cache-control": "no-store",
      };
      return context.html(awayPage(place, cell.id, pace), 503, headers);
    }
  };

  app.get("/", (context) => context.html(landing(place, cells, coordinatorUrl, pace)));

  for (const cell of cells) {
    const base = basePath(cell.id);
    app.get(`/-/status/${cell.id}`, (context) =>
      context.json({ isUp: cell.isUp }, 200, { "cache-control": "no-store" }),
    );
    const whole = (context: Context): Promise<Response> => passOn(context, cell, pathOf(context));
    app.all(base, whole).all(`${base}/*`, whole);
  }

  app.get("/-/find", (context) => {
    const route = (context.req.query("route") ?? "").trim().replace(/^\/+/, "");
    return context.redirect(route === "" ? "/" : `/${encodeURIComponent(route)}`, 303);
  });

  app.get("/:route", async (context) => {
    const route = context.req.param("route");
    const { found, ageMs } = await lookups.find(route);
    if (found === undefined)
      return context.html(
        messagePage(place, context.req.path, "Nobody has this name", `/${route} is free in all cells.`),
        404,
      );
    const lookup =
      ageMs === 0 ? "asking the coordinator" : `the router's memory, ${Math.round(ageMs)} ms old`;
    // As its owner spells it.
    return passOn(
      context,
      { id: found.cell.id, address: found.cell.address },
      `/${encodeURIComponent(found.record.bucket.value)}`,
      lookup,
    );
  });

  app.notFound((context) =>
    context.html(
      messagePage(place, context.req.path, "There is no such page", "Routes have one part, such as /ada."),
      404,
    ),
  );
  app.onError((error, context) => {
    const { path } = context.req;
    const refusal = refusalPage(place, path, error);
    if (refusal !== undefined) return context.html(refusal.page, refusal.status);
    const isMalformed = "code" in error && error.code === "INVALID_ARGUMENT";
    if (isMalformed)
      return context.html(messagePage(place, path, "That is no name", "Nobody can have it."), 404);
    process.stderr.write(`example: router: ${error.message}\n`);
    const text =
      "The coordinator does not answer, so nobody knows whose this name is. That is not the same as nobody having it.";
    return context.html(messagePage(place, path, "The name cannot be looked up", text), 503);
  });
  return app;
}

/** As the browser asked for it. */
function pathOf(context: Context): string {
  const { pathname, search } = new URL(context.req.url);
  return `${pathname}${search}`;
}
