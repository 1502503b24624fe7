/** The first valid request of each route, and changes of it. */
import { routes, type RouteId } from "../../../src/coordinator/api/contract.ts";
import type { Route } from "../../../src/coordinator/api/contract/route.ts";
import { cases, type Request } from "./cases.ts";
import type { Sent } from "./client.ts";
import { pathOf } from "./paths.ts";

export type Call = [path: string, sent: Sent];

export const rolesOf = ({ roles }: Route): readonly string[] => (roles === "anyone" ? [] : roles);

export const keyOf = (role: string): NonNullable<Sent["key"]> =>
  role === "cell" ? "cell 1" : (role as "operator" | "router");

/**
 * Returns a key that may use the route, not an operator's if possible. Operators may use every route, so
 * other keys show more.
 */
const someoneAllowed = (route: Route): Sent["key"] =>
  route.roles === "anyone" ? null : keyOf(rolesOf(route)[0] ?? "operator");

/** A call of the route with its first valid request and these changes. */
export function callOf(id: RouteId, changes: Request = {}): Call {
  const route: Route = routes[id];
  const [first] = cases[id].success;
  const body = first.body === undefined && route.body?.required ? { body: route.example.body } : {};
  const { params, query, raw, ...sent } = { ...first, ...body, key: someoneAllowed(route), ...changes };
  return [
    pathOf(route, { params: { ...first.params, ...params }, ...(query === undefined ? {} : { query }) }),
    raw === undefined ? sent : { ...sent, raw, body: undefined },
  ];
}

/** Checks each case, and fails with the names of all that are wrong. */
export async function checkEach<Case>(
  all: readonly (readonly [name: string, each: Case])[],
  check: (each: Case) => Promise<unknown>,
): Promise<void> {
  const wrong: string[] = [];
  let cause: unknown;
  for (const [name, each] of all)
    try {
      await check(each);
    } catch (error) {
      cause ??= error;
      wrong.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  if (wrong.length > 0) throw new Error(wrong.join("\n\n"), { cause });
}
