import { Hono } from "hono";
import { claimsOf, PEER_ROUTER, peerKey, type Claim } from "./batch.ts";

/** What differs between peers. All of them share the HTTP side below. */
export interface PeerStore {
  /** Resolves to false when a name is taken. The result is durable when it resolves, as for all methods. */
  begin(cell: string, lease: string, claims: Claim[]): Promise<boolean>;
  /** Resolves to false when the cell has no such granted lease. */
  commit(cell: string, lease: string): Promise<boolean>;
  lookup(type: string, name: string): Promise<object | undefined>;
}

/** `storeOf` makes the store from the bindings, which a Worker receives with each request. */
export function peerApp<Bindings extends object>(
  storeOf: (bindings: Bindings) => PeerStore,
): Hono<{ Bindings: Bindings }> {
  const app = new Hono<{ Bindings: Bindings }>();
  const unauthenticated = { code: "UNAUTHENTICATED" };

  app.put("/v1/cells/:cell/leases/:lease", async (c) => {
    const { cell, lease } = c.req.param();
    if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json(unauthenticated, 401);
    const claims = claimsOf(await c.req.json());
    if (claims === undefined) return c.json({ code: "INVALID_ARGUMENT" }, 400);
    if (!(await storeOf(c.env).begin(cell, lease, claims))) return c.json({ code: "ALREADY_EXISTS" }, 409);
    return c.json({ lease: { uuid: lease, cell_id: cell, state: "GRANTED" } }, 201);
  });

  app.post("/v1/cells/:cell/leases/:lease/commit", async (c) => {
    const { cell, lease } = c.req.param();
    if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json(unauthenticated, 401);
    if (!(await storeOf(c.env).commit(cell, lease))) return c.json({ code: "NOT_FOUND" }, 404);
    return c.json({ lease: { uuid: lease, cell_id: cell, state: "COMMITTED" } });
  });

  app.get("/v1/records/:type/:name{.+}", async (c) => {
    if (c.req.header("authorization") !== `Bearer ${PEER_ROUTER}`) return c.json(unauthenticated, 401);
    const { type, name } = c.req.param();
    const record = await storeOf(c.env).lookup(type, name.toLowerCase());
    return record === undefined ? c.json({ code: "NOT_FOUND" }, 404) : c.json({ record });
  });

  return app;
}
