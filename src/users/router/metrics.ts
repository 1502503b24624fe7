import type { ProxyHooks, RouterHooks } from "./hooks.ts";
import type { FailureKind } from "./proxy/failure.ts";

/** Upper bounds of the buckets, in milliseconds. */
const AGE_BUCKETS_MS = [0, 100, 500, 1_000, 2_000, 5_000, 15_000, 60_000, 300_000, 600_000];
/** Rules and layers are few. More label sets than this are counted together, as `other`. */
const MAX_SERIES = 1_000;

type Labels = Readonly<Record<string, string>>;

/** The events of one set of labels. */
interface Series {
  readonly labels: Labels;
  count: number;
}

/** Counts events by their labels, which always have the same names. */
class Counter {
  readonly #series = new Map<string, Series>();

  add(labels: Labels, by = 1): void {
    // Every request counts something, so the text of the labels is only made when it is read.
    const values = Object.values(labels).join("\n");
    const series = this.#series.get(values) ?? this.#newSeries(labels, values);
    series.count += by;
  }

  lines(name: string, help: string): string[] {
    const lines = Array.from(
      this.#series.values(),
      ({ labels, count }) => `${name}_total${labelText(labels)} ${count}`,
    );
    return [`# HELP ${name}_total ${help}`, `# TYPE ${name}_total counter`, ...lines];
  }

  #newSeries(given: Labels, values: string): Series {
    const isRoom = this.#series.size < MAX_SERIES;
    const labels = isRoom ? given : Object.fromEntries(Object.keys(given).map((name) => [name, "other"]));
    const key = isRoom ? values : "other";
    const series = this.#series.get(key) ?? { labels, count: 0 };
    this.#series.set(key, series);
    return series;
  }
}

/** Counts ages in buckets. */
class AgeHistogram {
  readonly #counts = AGE_BUCKETS_MS.map(() => 0);
  #count = 0;
  #sum = 0;

  add(value: number): void {
    const at = AGE_BUCKETS_MS.findIndex((bound) => value <= bound);
    if (at >= 0) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#count += 1;
    this.#sum += value;
  }

  lines(name: string, help: string): string[] {
    let below = 0;
    const buckets = AGE_BUCKETS_MS.map((bound, at) => {
      below += this.#counts[at] ?? 0;
      return `${name}_bucket{le="${bound}"} ${below}`;
    });
    return [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} histogram`,
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`,
    ];
  }
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escaped = (value: string): string =>
  value.slice(0, 200).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

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
