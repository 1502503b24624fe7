import type { RouterHooks } from "./hooks.ts";

/** Upper bounds of the buckets, in milliseconds. */
const AGE_BUCKETS_MS = [0, 100, 500, 1_000, 2_000, 5_000, 15_000, 60_000, 300_000, 600_000];
/** Rules and layers are few. More label sets than this are counted together, as `other`. */
const MAX_SERIES = 1_000;

class Counter {
  readonly #counts = new Map<string, number>();

  add(labels: Readonly<Record<string, string>>, by = 1): void {
    const wanted = labelText(labels);
    const isRoom = this.#counts.has(wanted) || this.#counts.size < MAX_SERIES;
    const text = isRoom
      ? wanted
      : labelText(Object.fromEntries(Object.keys(labels).map((l) => [l, "other"])));
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + by);
  }

  lines(name: string, help: string): string[] {
    const lines = [...this.#counts].map(([labels, count]) => `${name}_total${labels} ${count}`);
    return [`# TYPE ${name} counter`, `# HELP ${name} ${help}`, ...lines];
  }
}

class Histogram {
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
      `# TYPE ${name} histogram`,
      `# HELP ${name} ${help}`,
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`,
    ];
  }
}

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
  readonly #routeAges = new Histogram();
  readonly #reportAges = new Histogram();

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
   * Everything that was counted, in the OpenMetrics text format. Serve it as
   * `application/openmetrics-text; version=1.0.0; charset=utf-8`.
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
    return `${lines.join("\n")}\n# EOF\n`;
  }
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escaped = (value: string): string =>
  value.slice(0, 200).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
