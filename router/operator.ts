/** The router's own paths, for the people who operate it. They are never passed to a cell. */
const PREFIX = "/-/router/";
const NO_STORE = { "cache-control": "no-store" };

interface Operated {
  readonly metrics: () => string;
  readonly metricsKey: string | undefined;
}

export const isForOperator = (pathname: string): boolean => pathname.startsWith(PREFIX);

/** Answers `health`, which everybody may read, and `metrics`, which needs the key. */
export async function answerOperator(
  request: Request,
  pathname: string,
  router: Operated | Error,
): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD")
    return new Response(null, { status: 405, headers: { ...NO_STORE, allow: "GET, HEAD" } });
  switch (pathname.slice(PREFIX.length)) {
    case "health":
      return router instanceof Error
        ? Response.json(
            { status: "misconfigured", detail: router.message },
            { status: 500, headers: NO_STORE },
          )
        : Response.json({ status: "ok" }, { headers: NO_STORE });
    case "metrics":
      if (router instanceof Error || router.metricsKey === undefined) break;
      if (!(await isEqual(request.headers.get("authorization") ?? "", `Bearer ${router.metricsKey}`)))
        return new Response(null, { status: 401, headers: { ...NO_STORE, "www-authenticate": "Bearer" } });
      return new Response(router.metrics(), {
        headers: {
          ...NO_STORE,
          "content-type": "application/openmetrics-text; version=1.0.0; charset=utf-8",
        },
      });
    default:
  }
  return new Response("not found\n", { status: 404, headers: NO_STORE });
}

/** Compares digests, so that the time says nothing about the key. */
async function isEqual(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([digestOf(one), digestOf(other)]);
  return a.reduce((difference, byte, n) => difference | (byte ^ (b[n] ?? 0)), 0) === 0;
}

async function digestOf(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}
