import type { HealthService } from "./protobuf.ts";
import { callOf, type WireContext, type WireService } from "./wire-call.ts";

const probe =
  (route: "getReadiness" | "getHealth") =>
  async (_: unknown, context: WireContext): Promise<Record<string, never>> => {
    const call = await callOf(context, route);
    await call.send(route, {});
    return {};
  };

export const healthService: WireService<typeof HealthService> = {
  readinessProbe: probe("getReadiness"),
  livenessProbe: probe("getHealth"),
};
