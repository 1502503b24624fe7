/** The router's own paths, for the people who operate it. They are never passed to a cell. */
const PREFIX = "/-/router/";
/** Whether a URL can have the prefix once it is parsed. workerd gives it as the client has sent it. */
const MAY_HAVE_PREFIX = /[/\\]router[/\\]/;
const NO_STORE = { "cache-control": "no-store" };

/** What an operator may see of a router. */
export interface Operated {
  /** The metrics in the text format of Prometheus. Undefined if the router is not set up. */
  readonly metrics?: () => string;
  /** What is wrong with the settings or the rules, and may quote them. */
  readonly fault?: string;
  /** Undefined: only what everybody may see can be read. */
  readonly metricsKey: string | undefined;
}

/** Returns what a request of an operator asks for: the rest of the path. Null for all other requests. */
export function operationOf({ url }: Request): string | null {
  // Nearly all requests are for a cell, and a parsed URL costs each of them time.
  if (!MAY_HAVE_PREFIX.test(url) || !URL.canParse(url)) return null;
  const { pathname } = new URL(url);
  return pathname.startsWith(PREFIX) ? pathname.slice(PREFIX.length) : null;
}

/** Answers `health`, which everybody may read, and `metrics`, which needs the key. */
export async function answerOperator(
  request: Request,
  operation: string,
  router: Operated,
): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD")
    return new Response(null, { status: 405, headers: { ...NO_STORE, allow: "GET, HEAD" } });
  const { metrics, fault } = router;
  switch (operation) {
    case "health": {
      if (fault === undefined) return Response.json({ status: "ok" }, { headers: NO_STORE });
      // Rules can say how a deployment works inside.
      const detail = (await hasKey(request, router)) ? { detail: fault } : {};
      return Response.json({ status: "misconfigured", ...detail }, { status: 500, headers: NO_STORE });
    }
    case "metrics":
      if (metrics === undefined || router.metricsKey === undefined) break;
      if (!(await hasKey(request, router)))
        return new Response(null, { status: 401, headers: { ...NO_STORE, "www-authenticate": "Bearer" } });
      return new Response(metrics(), {
        headers: {
          ...NO_STORE,
          "content-type": "text/plain; version=0.0.4; charset=utf-8",
        },
      });
    default:
  }
  return new Response("not found\n", { status: 404, headers: NO_STORE });
}

async function hasKey({ headers }: Request, { metricsKey }: Operated): Promise<boolean> {
  return metricsKey !== undefined && isEqual(headers.get("authorization") ?? "", `Bearer ${metricsKey}`);
}

/** Compares digests, so that the time says nothing about the key. */
async function isEqual(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([digestOf(one), digestOf(other)]);
  return a.reduce((difference, byte, n) => difference | (byte ^ (b[n] ?? 0)), 0) === 0;
}

async function digestOf(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}
