import { ok } from "../../core/refusal.ts";
import type { metricsRoutes } from "../contract/metrics-route.ts";
import type { Handlers } from "../handler.ts";

export const metricsHandlers: Handlers<keyof typeof metricsRoutes> = {
  async getMetrics({ deployment, waitUntil }) {
    const text = await deployment.scrape.text(waitUntil);
    return text.ok ? ok({ status: 200, body: text.value }) : text;
  },
};
