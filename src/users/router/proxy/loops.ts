/** Finds requests that go around in a circle of routers, by their `CDN-Loop` header (RFC 8586). */

/** Tells a router from a cell, and from other proxies that use the header. */
const TOKEN = "leasehold-router";

/** How many routers may have passed a request on before: one router may stand in front of another. */
const MAX_ROUTERS_BEFORE = 1;

/** Returns whether more routers have passed a request on than may stand behind each other. */
export function isLooping({ headers }: Request): boolean {
  const before = headers.get("cdn-loop");
  if (before === null) return false;
  const routers = before.split(",").filter((entry) => entry.split(";")[0]?.trim().toLowerCase() === TOKEN);
  return routers.length > MAX_ROUTERS_BEFORE;
}

/** Marks a request as passed on by a router, after the marks of other proxies. */
export const markRouter = (headers: Headers): void => headers.append("cdn-loop", TOKEN);
