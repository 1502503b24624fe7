/** A Worker in front of the cells: it sends each request to the cell that owns its name. */
import {
  compileRuleset,
  createProxy,
  createRoutes,
  ProxyMetrics,
  RouterMetrics,
  workersCache,
  type Proxy,
  type ProxyFailure,
} from "leasehold/router";
import { answerOperator, operationOf, type Operated } from "./operator.ts";
import defaultRules from "./rules.json" with { type: "json" };
import { metricsKeyOf, readSettings } from "./settings.ts";

type Env = Readonly<Record<string, unknown>>;

interface Router extends Operated {
  /** Undefined if the router is not set up. */
  readonly proxy?: Proxy;
}

/** One for each environment. A wrong one stays wrong until the next deployment. */
const routers = new WeakMap<Env, Router>();

export default {
  async fetch(request, env, context): Promise<Response> {
    let router = routers.get(env);
    if (router === undefined) {
      router = start(env);
      routers.set(env, router);
    }
    const operation = operationOf(request);
    if (operation !== null) return await answerOperator(request, operation, router);
    if (router.proxy === undefined) return new Response("The router is not set up.\n", { status: 500 });
    return await router.proxy(request, {
      // Cloudflare sets this header, and removes what a client sends.
      clientAddress: request.headers.get("cf-connecting-ip") ?? undefined,
      waitUntil: (work) => context.waitUntil(work),
    });
  },
} satisfies ExportedHandler<Env>;

function start(env: Env): Router {
  try {
    return makeRouter(env);
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    log("router_misconfigured", { detail: fault });
    return { fault, metricsKey: metricsKeyOf(env) };
  }
}

function makeRouter(env: Env): Router {
  const settings = readSettings(env);
  const ruleset = compileRuleset(settings.rules ?? defaultRules);
  const [lookupMetrics, proxyMetrics] = [new RouterMetrics(), new ProxyMetrics()];
  const { answerTimeoutMs, uploadTimeoutMs, ...lookups } = settings.numbers;
  const routes = createRoutes({
    ...lookups,
    url: settings.url,
    key: settings.key,
    reports: settings.usesReports,
    ...(settings.usesSharedCache ? { sharedCache: workersCache() } : {}),
    hooks: lookupMetrics.hooks,
  });
  const proxy = createProxy({
    routes,
    ruleset,
    boundMs: settings.usesReports ? (lookups.boundMs ?? 2_000) : (lookups.maxAgeMs ?? 5_000),
    ...(answerTimeoutMs === undefined ? {} : { answerTimeoutMs }),
    ...(uploadTimeoutMs === undefined ? {} : { uploadTimeoutMs }),
    allowLocalHttp: settings.allowsLocalHttp,
    trustForwarded: settings.trustsForwarded,
    ...(settings.traceShare === undefined ? {} : { traceShare: settings.traceShare }),
    showRoute: settings.showsRoute,
    hooks: {
      ...proxyMetrics.hooks,
      onFallback: lookupMetrics.hooks.onFallback,
      onProxyFailure: (failure) => {
        proxyMetrics.hooks.onProxyFailure?.(failure);
        logFailure(failure);
      },
    },
  });
  return {
    proxy,
    metrics: () => `${proxyMetrics.text()}${lookupMetrics.text()}`,
    metricsKey: settings.metricsKey,
  };
}

function logFailure({ kind, status, rule, cell, detail }: ProxyFailure): void {
  // A name that does not exist and a client that leaves are everyday events.
  if (status < 500) return;
  log("router_failure", {
    kind,
    detail,
    ...(rule === null ? {} : { rule }),
    ...(cell === null ? {} : { cell }),
  });
}

function log(event: string, fields: Readonly<Record<string, string>>): void {
  // oxlint-disable-next-line no-console -- the platform collects the lines
  console.log(JSON.stringify({ event, ...fields }));
}
