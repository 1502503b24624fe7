/**
 * The obvious first design on Cloudflare: Hono and one D1 database with a unique index, and `batch()` for
 * statements that must succeed or fail together.
 */
import { peerApp, type PeerStore } from "./app.ts";

interface Env {
  DB: D1Database;
}

const LEASE = "INSERT INTO lease (lease, cell, state, created_at_ms) VALUES (?, ?, 'GRANTED', ?)";
const CLAIM = `INSERT INTO claim (type, name, value, cell, subject, source, lease, created_at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const DECIDE = `UPDATE lease SET state = 'COMMITTED', decided_at_ms = ?
  WHERE lease = ? AND cell = ? AND state = 'GRANTED'`;
const RELEASE = "UPDATE claim SET lease = NULL WHERE lease = ? AND cell = ?";
const LOOKUP = "SELECT value, cell, subject, source, lease FROM claim WHERE type = ? AND name = ?";

const storeOf = ({ DB: db }: Env): PeerStore => ({
  async begin(cell, lease, claims) {
    const now = Date.now();
    const inserts = claims.map(({ type, name, value, subject, source }) =>
      db.prepare(CLAIM).bind(type, name, value, cell, subject, source, lease, now),
    );
    try {
      await db.batch([db.prepare(LEASE).bind(lease, cell, now), ...inserts]);
      return true;
    } catch (error) {
      if (String(error).includes("UNIQUE constraint failed")) return false;
      throw error;
    }
  },

  async commit(cell, lease) {
    const [decided] = await db.batch([
      db.prepare(DECIDE).bind(Date.now(), lease, cell),
      db.prepare(RELEASE).bind(lease, cell),
    ]);
    return decided?.meta.changes === 1;
  },

  async lookup(type, name) {
    return (await db.prepare(LOOKUP).bind(type, name).first()) ?? undefined;
  },
});

export default peerApp(storeOf);
