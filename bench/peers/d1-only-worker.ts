/** What one writes first on Cloudflare: Hono and one D1 database, a unique index, `batch()` for what belongs together. */
import { Hono } from "hono";
import { claimsOf, PEER_ROUTER, peerKey } from "./batch.ts";

interface Env {
  DB: D1Database;
}

const app = new Hono<{ Bindings: Env }>();

app.put("/v1/cells/:cell/leases/:lease", async (c) => {
  const { cell, lease } = c.req.param();
  if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const claims = claimsOf(await c.req.json());
  if (claims === undefined) return c.json({ code: "INVALID_ARGUMENT" }, 400);
  const now = Date.now();
  try {
    await c.env.DB.batch([
      c.env.DB.prepare("INSERT INTO lease (lease, cell, state, created_at_ms) VALUES (?, ?, 'GRANTED', ?)").bind(lease, cell, now),
      ...claims.map(({ type, name, value, subject, source }) =>
        c.env.DB.prepare("INSERT INTO claim (type, name, value, cell, subject, source, lease, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)").bind(
          type,
          name,
          value,
          cell,
          subject,
          source,
          lease,
          now,
        ),
      ),
    ]);
  } catch (error) {
    if (String(error).includes("UNIQUE constraint failed")) return c.json({ code: "ALREADY_EXISTS" }, 409);
    throw error;
  }
  return c.json({ lease: { uuid: lease, cell_id: cell, state: "GRANTED" } }, 201);
});

app.post("/v1/cells/:cell/leases/:lease/commit", async (c) => {
  const { cell, lease } = c.req.param();
  if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const [decided] = await c.env.DB.batch([
    c.env.DB.prepare("UPDATE lease SET state = 'COMMITTED', decided_at_ms = ? WHERE lease = ? AND cell = ? AND state = 'GRANTED'").bind(
      Date.now(),
      lease,
      cell,
    ),
    c.env.DB.prepare("UPDATE claim SET lease = NULL WHERE lease = ? AND cell = ?").bind(lease, cell),
  ]);
  if (decided?.meta.changes !== 1) return c.json({ code: "NOT_FOUND" }, 404);
  return c.json({ lease: { uuid: lease, cell_id: cell, state: "COMMITTED" } });
});

app.get("/v1/records/:type/:name{.+}", async (c) => {
  if (c.req.header("authorization") !== `Bearer ${PEER_ROUTER}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const { type, name } = c.req.param();
  const found = await c.env.DB.prepare("SELECT value, cell, subject, source, lease FROM claim WHERE type = ? AND name = ?")
    .bind(type, name.toLowerCase())
    .first();
  return found === null ? c.json({ code: "NOT_FOUND" }, 404) : c.json({ record: found });
});

export default app;
