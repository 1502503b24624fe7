/** The pages of a cell. */
import { Hono, type Context } from "hono";
import { misdirectedResponse } from "leasehold/cell";
import { Accounts } from "../application/accounts.ts";
import type { CellConfig } from "../application/cell-config.ts";
import type { OpenCell } from "../application/open-cell.ts";
import { serveAssets } from "../web/assets.ts";
import { basePath, renderPage, type Html } from "../web/layout.ts";
import { HOST, originsOf } from "../web/local.ts";
import { messagePage, refusalPage } from "../web/message-page.ts";
import { secure } from "../web/security.ts";
import { accountPages } from "./account.ts";
import { operationsPages } from "./operations.ts";
import { panelOf } from "./panel.ts";
import { peoplePages } from "./people.ts";
import { profilePages } from "./profile.ts";

/** The parts that all pages of a cell share. */
export interface CellPages {
  open: OpenCell;
  accounts: Accounts;
  config: CellConfig;
  /** The path that all pages of the cell start with. */
  base: string;
  /** Renders a page of this cell, with the panel beside it. */
  show(context: Context, title: string, main: Html, status?: 200 | 404 | 422): Promise<Response>;
}

export function cellApp(open: OpenCell, config: CellConfig): Hono {
  const app = new Hono();
  const base = basePath(config.cell);
  const owner = { id: config.cell, cells: config.cells };
  const pages: CellPages = {
    open,
    config,
    base,
    accounts: new Accounts(open),
    show: async (context, title, main, status = 200) => {
      const aside = await panelOf(open, config);
      return context.html(renderPage({ title, owner, path: context.req.path, main, aside }), status);
    },
  };
  secure(app, [...originsOf(config.routerPort), ...originsOf(config.port)]);
  serveAssets(app);
  app.get(`${base}/panel`, async (context) =>
    context.html(await panelOf(open, config), 200, { "cache-control": "no-store" }),
  );
  peoplePages(app, pages);
  accountPages(app, pages);
  operationsPages(app, pages);
  profilePages(app, pages);
  app.notFound((context) => {
    const { path, raw } = context.req;
    // Who opens the cell's own address still reaches the start page and the other cells.
    if (misdirectedResponse(raw.headers) === undefined)
      return context.redirect(`http://${HOST}:${config.routerPort}${path}`);
    return context.html(
      messagePage(owner, path, "This page does not exist", "Go to the start page and try from there."),
      404,
    );
  });
  app.onError((error, context) => {
    const { path } = context.req;
    const refusal = refusalPage(owner, path, error);
    if (refusal !== undefined) return context.html(refusal.page, refusal.status);
    process.stderr.write(`example: cell ${config.cell}: ${error.message}\n`);
    return context.html(messagePage(owner, path, "The request failed", error.message), 500);
  });
  return app;
}
