import type { RouterHooks } from "./hooks.ts";
import { AgeHistogram, Counter } from "./metric-families.ts";

/**
 * Counts what a router does. Pass its `hooks` to `createRoutes` and to `createProxy`, and serve its `text`.
 *
 * @example
 * ```ts
 * import { createRoutes, RouterMetrics } from "leasehold/router";
 *
 * const metrics = new RouterMetrics();
 * const routes = createRoutes({ url: "https://leasehold.example.com", key: "secret", hooks: metrics.hooks });
 * await routes.find({ type: "ROUTES", value: "gitlab-org" });
 * console.log(metrics.text());
 * ```
 */
export class RouterMetrics {
  readonly #routes = new Counter();
  readonly #fallbacks = new Counter();
  readonly #misdirected = new Counter();
  readonly #backwards = new Counter();
  readonly #refusedPositions = new Counter();
  readonly #failures = new Counter();
  readonly #unusable = new Counter();
  readonly #reportKeys = new Counter();
  readonly #routeAges = new AgeHistogram();
  readonly #reportAges = new AgeHistogram();

  /** Callbacks that count. */
  readonly hooks: Required<RouterHooks> = {
    onRoute: ({ result, layer, ageMs }) => {
      this.#routes.add({ result, layer });
      if (layer !== "none") this.#routeAges.add(ageMs);
    },
    onReport: ({ ageMs, keys }) => {
      this.#reportAges.add(ageMs);
      this.#reportKeys.add({}, keys);
    },
    onBackwards: () => this.#backwards.add({}),
    onPositionRefused: () => this.#refusedPositions.add({}),
    onMisdirected: () => this.#misdirected.add({}),
    onFallback: ({ rule }) => this.#fallbacks.add({ rule }),
    onFailure: ({ operation }) => this.#failures.add({ operation }),
    onUnusableAddress: ({ cell }) => this.#unusable.add({ cell }),
  };

  /**
   * Everything that was counted, in the text format of Prometheus. Serve it as
   * `text/plain; version=0.0.4; charset=utf-8`. Other metrics may precede and follow it.
   */
  text(): string {
    const lines = [
      ...this.#routes.lines("route", "Answers, by result and by the layer that had them."),
      ...this.#routeAges.lines("route_age_ms", "Ages of answers."),
      ...this.#reportAges.lines("report_age_ms", "Ages that reports had reached when the next one came."),
      ...this.#reportKeys.lines("report_keys", "Keys in reports."),
      ...this.#fallbacks.lines("route_fallback", "Requests that a rule sent to its default cell."),
      ...this.#misdirected.lines("route_misdirected", "Requests that a cell refused with 421."),
      ...this.#backwards.lines("route_backwards", "Answers that were older than one shown before."),
      ...this.#refusedPositions.lines(
        "route_position_refused",
        "Wanted positions that no shard has reached.",
      ),
      ...this.#failures.lines("route_failure", "Requests of the router that failed, by operation."),
      ...this.#unusable.lines("route_unusable_address", "Answers with an address that no router may use."),
    ];
    return `${lines.join("\n")}\n`;
  }
}
