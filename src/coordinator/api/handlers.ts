import { edgeHandlers } from "../capabilities/edges.ts";
import type { Routes } from "./contract.ts";
import type { Handlers } from "./handler.ts";
import { leaseHandlers } from "./handlers/leases.ts";
import { limitNames, limitTable, limitVariable, apiLimitName } from "../../common/limits.ts";
import { ok } from "../kernel/refusal.ts";
import { listFailedCopies } from "../cron/health.ts";
import { listStale, type StalePosition } from "../capabilities/stale/edge/stale.ts";
import type { serviceRoutes } from "./contract/service-routes.ts";
import { sendDocument } from "./encoded-once.ts";
import { pageOf } from "./paging.ts";
import { UNREADABLE_PROJECTION, withFailure } from "../isolate/reach.ts";
import { NO_TYPES, timeOf, toApiLease } from "./answers.ts";
import { VERSION } from "./version.ts";

const serviceHandlers: Handlers<typeof serviceRoutes> = {
  async listStaleLeases(call) {
    const { deployment, waitUntil, query } = call;
    // If the parameter is left out, the deployment's value applies. It may change between two pages, so the
    // token is bound to the value that was used.
    const olderThanS = query.older_than_s ?? deployment.config.limits.staleS;
    const page = await pageOf<StalePosition>({ ...call, query: { ...query, older_than_s: olderThanS } });
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const { cell } = query;
    const registered = cell === undefined ? ok(undefined) : await deployment.directory.cell(cell, waitUntil);
    if (!registered.ok) return registered;
    const listed = await listStale(deployment, {
      olderThanS,
      limit,
      ...(cell === undefined ? {} : { cell }),
      ...(position === undefined ? {} : { after: position }),
    });
    if (!listed.ok)
      return listed.refusal.reason === "PLACEMENT_MISMATCH"
        ? listed
        : withFailure(listed, UNREADABLE_PROJECTION);
    const { leases, lastPulledAtMs, next: nextPosition } = listed.value;
    const body = {
      leases: leases.map((lease) => ({
        ...toApiLease(NO_TYPES, { ...lease, state: "GRANTED" }),
        confirmed: lease.confirmed,
      })),
      last_pulled_at: lastPulledAtMs === null ? null : timeOf(lastPulledAtMs),
      next_page_token: await next(nextPosition ?? undefined),
    };
    return ok({ status: 200, body });
  },

  listLimits({ deployment: { config } }) {
    const limits = limitNames.map((name) => ({
      name: apiLimitName(name),
      value: config.limits[name],
      default: limitTable[name].default,
      unit: limitTable[name].unit,
      variable: limitVariable(name),
      about: limitTable[name].about,
    }));
    return ok({ status: 200, body: { limits } });
  },

  getHealth: ({ deployment }) =>
    ok({
      status: 200,
      body: { status: "ok", version: VERSION, placement: deployment.envelope.placement },
    }),

  async getReadiness({ deployment, waitUntil }) {
    const report = await deployment.readiness.check(waitUntil);
    if (!report.ok) return report;
    const { status, failed, d1, missingMigrations, cron } = report.value;
    const lastRun =
      cron === null ? null : { finished_at: timeOf(cron.finishedAtMs), cells_failed: cron.cellsFailed };
    const body = { status, failed, d1, missing_migrations: [...missingMigrations], last_cron_run: lastRun };
    return ok({ status: 200, body });
  },

  async listFailedCopies(call) {
    const page = await pageOf<string>(call);
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const listed = await listFailedCopies(call.deployment.env, limit, position);
    if (!listed.ok) return withFailure(listed, UNREADABLE_PROJECTION);
    const body = {
      copies: listed.value.copies.map(({ cell, error, lastPulledAtMs }) => ({
        cell_id: cell,
        error,
        last_pulled_at: lastPulledAtMs === null ? null : timeOf(lastPulledAtMs),
      })),
      next_page_token: await next(listed.value.next),
    };
    return ok({ status: 200, body });
  },

  async getOpenApi({ deployment, waitUntil }) {
    const { describedApi, encodedOpenApi } = await import("./docs/document.ts");
    const document = await describedApi(deployment, waitUntil);
    return sendDocument(deployment, encodedOpenApi(document), waitUntil);
  },

  async getDocs({ deployment, waitUntil }) {
    const [{ describedApi }, { encodedPage, pageHeaders }] = await Promise.all([
      import("./docs/document.ts"),
      import("./docs/page.ts"),
    ]);
    const document = await describedApi(deployment, waitUntil);
    return sendDocument(deployment, encodedPage(document), waitUntil, pageHeaders);
  },

  getRoot: () => ok({ status: 200, body: { service: "leasehold", docs: "/docs", openapi: "/openapi.json" } }),
};

/** The handler of each route. It doesn't compile if a route of the contract has none. */
export const handlers: Handlers<Routes> = { ...leaseHandlers, ...edgeHandlers, ...serviceHandlers };
