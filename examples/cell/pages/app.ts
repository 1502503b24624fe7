/** The pages of a cell. */
import { Hono, type Context } from "hono";
import { Accounts } from "../application/accounts.ts";
import type { Job } from "../application/job.ts";
import type { OpenCell } from "../application/open-cell.ts";
import { serveAssets } from "../web/assets.ts";
import { basePath, document, type Html } from "../web/layout.ts";
import { originsOf } from "../web/local.ts";
import { messagePage, refusalPage } from "../web/message.ts";
import { secure } from "../web/security.ts";
import { accountPages } from "./account.ts";
import { operationsPages } from "./operations.ts";
import { panelOf } from "./panel.ts";
import { peoplePages } from "./people.ts";
import { profilePages } from "./profile.ts";

/** What every page of a cell has at hand. */
export interface CellPages {
  open: OpenCell;
  accounts: Accounts;
  job: Job;
  /** Where the pages begin. */
  base: string;
  /** Answers a page of this cell, with the panel beside it. */
  show(context: Context, title: string, main: Html, status?: 200 | 404 | 422): Promise<Response>;
}

export function cellApp(open: OpenCell, job: Job): Hono {
  const app = new Hono();
  const base = basePath(job.cell);
  const place = { id: job.cell, cells: job.cells };
  const pages: CellPages = {
    open,
    job,
    base,
    accounts: new Accounts(open),
    show: async (context, title, main, status = 200) => {
      const aside = await panelOf(open, job);
      return context.html(document({ title, place, path: context.req.path, main, aside }), status);
    },
  };
  secure(app, [...originsOf(job.routerPort), ...originsOf(job.port)]);
  serveAssets(app);
  app.get(`${base}/panel`, async (context) =>
    context.html(await panelOf(open, job), 200, { "cache-control": "no-store" }),
  );
  peoplePages(app, pages);
  accountPages(app, pages);
  operationsPages(app, pages);
  profilePages(app, pages);
  app.notFound((context) =>
    context.html(
      messagePage(
        place,
        context.req.path,
        "There is no such page",
        "Go back to the start and try from there.",
      ),
      404,
    ),
  );
  app.onError((error, context) => {
    const { path } = context.req;
    const refusal = refusalPage(place, path, error);
    if (refusal !== undefined) return context.html(refusal.page, refusal.status);
    process.stderr.write(`example: cell ${job.cell}: ${error.message}\n`);
    return context.html(messagePage(place, path, "That did not work", error.message), 500);
  });
  return app;
}
