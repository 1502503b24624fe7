import type { FailureKind } from "./failure.ts";
import type { ProxyHooks } from "./hooks.ts";

/** `healed`: a second cell has answered, after the first one had refused the request. */
type Result = "forwarded" | "healed" | FailureKind;

/**
 * Counts what a proxy does, for Prometheus and others that read OpenMetrics. It has no names and no paths.
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
  readonly #requests = new Map<Result, number>();
  readonly #refused = new Map<string, number>();

  constructor() {
    this.hooks = {
      onForwarded: ({ hops }) => add(this.#requests, hops === 0 ? "forwarded" : "healed"),
      onRefused: ({ rule }) => add(this.#refused, rule),
      onProxyFailure: ({ kind }) => add(this.#requests, kind),
    };
  }

  /**
   * The counters in the text format of OpenMetrics, without the `# EOF` at the end, so that other metrics can
   * follow:
   *
   * - `proxy_requests_total{result}`: requests by what became of them: `forwarded`, `healed`, or the kind of
   *   the failure
   * - `proxy_refused_total{rule}`: answers of cells that do not have the name (421), by the rule that chose
   *   the cell
   */
  text(): string {
    return [
      ...counter("proxy_requests", "Requests by what became of them.", "result", this.#requests),
      ...counter("proxy_refused", "Answers of cells that do not have the name.", "rule", this.#refused),
      "",
    ].join("\n");
  }
}

function add<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function counter(name: string, help: string, label: string, counts: ReadonlyMap<string, number>): string[] {
  const samples = [...counts].map(([value, count]) => `${name}_total{${label}="${escaped(value)}"} ${count}`);
  return [`# TYPE ${name} counter`, `# HELP ${name} ${help}`, ...samples];
}

const escaped = (text: string): string =>
  text
    .replaceAll("\\", String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll("\n", String.raw`\n`);
