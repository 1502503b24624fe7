import * as vitest from "vitest";
import { MemoryLocal } from "./memory-leases.ts";
import { localLeasesSuite } from "../../../src/users/cell/conformance/local-leases.ts";
import { suitesOf } from "../../../src/users/cell/conformance/target.ts";

localLeasesSuite(suitesOf(vitest), "the in-memory twin", async () => {
  const local = new MemoryLocal(Date.now);
  return {
    local,
    save: async (uuid) => {
      if (local.fences.has(uuid)) throw new Error("there is a fence");
      local.rows.set(uuid, { uuid, createdAtMs: Date.now() });
    },
    age: async (uuid, ms) => {
      const row = local.rows.get(uuid);
      if (row !== undefined) row.createdAtMs -= ms;
      const writtenMs = local.fences.get(uuid);
      if (writtenMs !== undefined) local.fences.set(uuid, writtenMs - ms);
    },
    queued: async () => local.queued,
    clear: async () => {
      local.rows.clear();
      local.fences.clear();
    },
    stop: async () => {},
  };
});
