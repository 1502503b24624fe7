import type { Route } from "../../../src/coordinator/api/contract/route.ts";
import type { Request } from "./cases.ts";

const plain: Record<string, string> = {
  cell: "1",
  uuid: "0191e1a0-0000-7000-8000-000000000001",
  bucket_type: "EMAILS",
  value: "a@b.example",
  // A key and a transfer may have it.
  id: "2-0191e1a0-0000-7000-8000-000000000001",
  part: "shard-0",
  operation: "a",
  shard: "0",
};

/** Returns the path of a route with these parameters, and with default values for the others. */
export function pathOf(route: Route, { params = {}, query }: Pick<Request, "params" | "query">): string {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? plain[name] ?? "");
  return query === undefined ? path : `${path}?${query}`;
}
