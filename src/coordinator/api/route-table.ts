import { routeIds, routes, type RouteId } from "./contract.ts";
import { parameterNames, type Route } from "./contract/route.ts";

/** What can follow some segments of a path. */
interface Branch {
  /** By the next segment. */
  next: Map<string, Branch>;
  /** The routes that end here, by method. */
  ends: Map<string, RouteId>;
  /** The routes whose last parameter takes all segments that follow, by method. */
  rests: Map<string, RouteId>;
}

/** Stands for any segment. No path has this character. */
const PARAMETER = "\0";

const newBranch = (): Branch => ({ next: new Map(), ends: new Map(), rests: new Map() });

const root = newBranch();
for (const id of routeIds) add(id, routes[id]);

function add(id: RouteId, { path, method, rest }: Route): void {
  const segments = path.split("/");
  if (rest === true) segments.pop();
  let branch = root;
  for (const segment of segments) {
    const key = segment.startsWith("{") ? PARAMETER : segment;
    const next = branch.next.get(key) ?? newBranch();
    branch.next.set(key, next);
    branch = next;
  }
  (rest === true ? branch.rests : branch.ends).set(method, id);
}

/** The routes of a path by method, and the values of its parameters in their order. */
interface Match {
  ids: ReadonlyMap<string, RouteId>;
  values: readonly string[];
}

/** Paths with a literal segment come before those with a parameter in its place. */
function matchesOf(path: string): Match[] {
  const found: Match[] = [];
  collect(root, path.split("/"), 0, [], found);
  return found;
}

function collect(
  { next, ends, rests }: Branch,
  segments: readonly string[],
  index: number,
  values: readonly string[],
  found: Match[],
): void {
  const segment = segments[index];
  if (segment === undefined) {
    found.push({ ids: ends, values });
    return;
  }
  const literal = next.get(segment);
  const parameter = next.get(PARAMETER);
  if (literal !== undefined) collect(literal, segments, index + 1, values, found);
  if (parameter !== undefined && segment !== "")
    collect(parameter, segments, index + 1, [...values, segment], found);
  if (rests.size > 0) found.push({ ids: rests, values: [...values, segments.slice(index).join("/")] });
}

const names = Object.fromEntries(routeIds.map((id) => [id, parameterNames(routes[id])]));

interface FoundRoute {
  id: RouteId;
  /** Percent-encoded, as they were sent. */
  parameters: ReadonlyMap<string, string>;
}

/**
 * Finds the route of a path, as it was sent. If it were decoded first, a percent-encoded slash in a name
 * would become a separator. A `HEAD` is answered by the route of the `GET`.
 */
export function findRoute(method: string, path: string): FoundRoute | undefined {
  const sought = method === "HEAD" ? "GET" : method;
  for (const { ids, values } of matchesOf(path)) {
    const id = ids.get(sought);
    if (id === undefined) continue;
    return { id, parameters: new Map(names[id]?.map((name, index) => [name, values[index] ?? ""])) };
  }
  return undefined;
}

/** The methods of all routes of a path. */
export const methodsAt = (path: string): string[] => matchesOf(path).flatMap(({ ids }) => [...ids.keys()]);
