import { Counter } from "../metric-families.ts";
import type { FailureKind } from "./failure.ts";
import type { ProxyHooks } from "./hooks.ts";

/** `healed`: a second cell has answered, after the first one had refused the request. */
type Result = "forwarded" | "healed" | FailureKind;

/**
 * Counts what a proxy does, for Prometheus and others that read its format. It has no names and no paths.
 * `RouterMetrics` counts the lookups and the fallbacks.
 *
 * @example
 * ```ts
 * import { createProxy, ProxyMetrics, type Routes, type Ruleset } from "leasehold/router";
 *
 * declare const routes: Routes;
 * declare const ruleset: Ruleset;
 * const metrics = new ProxyMetrics();
 * const proxy = createProxy({ routes, ruleset, hooks: metrics.hooks });
 * await proxy(new Request("https://www.example.com/ada"));
 * console.log(metrics.text());
 * ```
 */
export class ProxyMetrics {
  /** Counts the events of one proxy or more. */
  readonly hooks: ProxyHooks;
  readonly #requests = new Counter();
  readonly #refused = new Counter();

  constructor() {
    this.hooks = {
      onForwarded: ({ hops }) => this.#count(hops === 0 ? "forwarded" : "healed"),
      onRefused: ({ rule }) => this.#refused.add({ rule }),
      onProxyFailure: ({ kind }) => this.#count(kind),
    };
  }

  #count(result: Result): void {
    this.#requests.add({ result });
  }

  /**
   * The counters in the text format of Prometheus. Other metrics may precede and follow them:
   *
   * - `proxy_requests_total{result}`: requests by what became of them: `forwarded`, `healed`, or the kind of
   *   the failure
   * - `proxy_refused_total{rule}`: answers of cells that do not have the name (421), by the rule that chose
   *   the cell
   */
  text(): string {
    return [
      ...this.#requests.lines("proxy_requests", "Requests by what became of them."),
      ...this.#refused.lines("proxy_refused", "Answers of cells that do not have the name."),
      "",
    ].join("\n");
  }
}
