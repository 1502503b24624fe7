import { noAuditTrail, type AuditTrail } from "../audit-trail.ts";
import { Slot } from "../slot.ts";
import { alwaysWorks, type Standing } from "../standing.ts";
import { stepsOf, type Halves } from "../half.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import { Instances } from "../instances.ts";
import { Tables } from "../tables.ts";
import type { Ports } from "../ports.ts";
import { noDirectoryHooks } from "./hooks.ts";
import { directorySchema } from "./schema.ts";
import { DirectoryStore } from "./store.ts";

export type DirectoryPart = ReturnType<typeof makePart>;

/** Makes the parts in their order. One that needs a later one does not compile, except in a closure. */
export function makePart(ports: Ports, limits: Limits, halves: Halves<never, unknown>) {
  const tables = new Tables(ports, directorySchema, stepsOf(halves));
  const startedAtMs = ports.clock.now();
  const store = new DirectoryStore(ports.sql);
  const instances = new Instances(ports, store.position);
  const standing = new Slot<Standing>(alwaysWorks);
  const commits = new GroupCommit(
    ports,
    standing,
    () => {
      if (store.storePosition()) instances.raise();
    },
    () => instances.madeDurable(store.position),
  );
  const audit = new Slot<AuditTrail>(noAuditTrail);
  return {
    hooks: noDirectoryHooks(),
    capabilities: {},
    ports,
    tables,
    limits,
    startedAtMs,
    store,
    instances,
    standing,
    commits,
    audit,
  };
}
