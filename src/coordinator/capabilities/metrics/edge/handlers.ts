import { ok } from "../../../kernel/refusal.ts";
import { wanted } from "../../../api/http-answer.ts";
import { metricsRoutes } from "./routes.ts";
import type { Handlers } from "../../../api/handler.ts";
import { OPEN_METRICS } from "./exposition.ts";

const metricsHandlers: Handlers<typeof metricsRoutes> = {
  async getMetrics({ deployment, waitUntil, accept }) {
    const scraped = await deployment.scrape.read(waitUntil);
    if (!scraped.ok) return scraped;
    if (!wantsOpenMetrics(accept)) return ok({ status: 200, body: scraped.value.prometheusText() });
    const headers = { "content-type": `${OPEN_METRICS}; charset=utf-8` };
    return ok({ status: 200, body: scraped.value.openMetrics(), headers });
  },
};

/** Prometheus says with weights which format it likes better. Older ones ask for OpenMetrics 0.0.1. */
function wantsOpenMetrics(accept: string | undefined): boolean {
  const weight = wanted(accept, "application/openmetrics-text", "1.0.0");
  return weight > 0 && weight >= wanted(accept, "text/plain", "0.0.4");
}

export { metricsHandlers as handlers, metricsRoutes as routes };
