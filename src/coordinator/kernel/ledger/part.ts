import { noAuditTrail, type AuditTrail } from "../audit-trail.ts";
import { stepsOf, type Halves } from "../half.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import { Instances } from "../instances.ts";
import { Tables } from "../tables.ts";
import { Histogram } from "../metrics/histogram.ts";
import { LedgerCounters } from "../metrics/ledger-counters.ts";
import type { Ports } from "../ports.ts";
import { type Peers } from "../methods.ts";
import { PlacementGuard } from "../placement-guard.ts";
import { Begins } from "./begins.ts";
import { Decisions } from "./decisions.ts";
import { Deliveries } from "./deliveries.ts";
import { ShardLinks } from "./shard-links.ts";
import { noSightings, type Sightings } from "./sightings.ts";
import { OldOutcomes } from "./old-outcomes.ts";
import { Positions } from "./position.ts";
import { Pruner } from "./prune.ts";
import { ledgerSchema } from "./schema.ts";
import { LedgerStore } from "./store.ts";
import { onlyNames, type LeaseKind } from "./lease-kind.ts";
import { noLedgerHooks } from "./hooks.ts";
import { Slot } from "../slot.ts";
import { alwaysWorks, type Standing } from "../standing.ts";
import { neverWaits, type Waiter } from "./waiter.ts";

export type LedgerPart = ReturnType<typeof makePart>;

/** Makes the parts in their order. One that needs a later one does not compile, except in a closure. */
export function makePart(
  cell: string,
  platform: Ports,
  limits: Limits,
  peers: Pick<Peers, "shard" | "directory">,
  halves: Halves<never, unknown>,
) {
  let isHalted = false;
  const ports: Ports = {
    ...platform,
    halt: (reason) => {
      isHalted = true;
      platform.halt(reason);
    },
  };
  const tables = new Tables(ports, ledgerSchema, stepsOf(halves));
  const startedAtMs = ports.clock.now();
  const beginDurations = new Histogram(ports.clock);
  const decisionDurations = new Histogram(ports.clock);
  const counters = new LedgerCounters();
  const store = new LedgerStore(ports.sql, cell);
  const kinds = new Slot<LeaseKind>(onlyNames);
  const placementGuard = new PlacementGuard(ports, limits, peers, {
    firstUse: () => deliveries.start(),
    cell,
  });
  const positions = new Positions(store.lastPosition());
  const instances = new Instances(ports, positions.last);
  const standing = new Slot<Standing>(alwaysWorks);
  const sightings = new Slot<Sightings>(noSightings);
  const hooks = noLedgerHooks();
  const stored = {
    cell,
    ports,
    limits,
    peers,
    store,
    kinds,
    placementGuard,
    positions,
    instances,
    standing,
    sightings,
  };
  const links = new ShardLinks({ ...stored, isHalted: () => isHalted });
  const deliveries: Deliveries = new Deliveries({ ...stored, links });
  const commits = new GroupCommit(
    ports,
    standing,
    () => instances.raise(),
    () => instances.madeDurable(positions.last),
  );
  const audit = new Slot<AuditTrail>(noAuditTrail);
  const sending = { ...stored, hooks, links, deliveries, commits, audit };
  const oldOutcomes = new OldOutcomes(stored);
  const waiter = new Slot<Waiter>(neverWaits);
  const begins = new Begins({ ...sending, waiter, oldOutcomes });
  const decisions = new Decisions({ ...sending, counters, begins });
  const part = { ...sending, counters, waiter, begins, decisions, oldOutcomes };
  return {
    ...part,
    capabilities: {},
    tables,
    startedAtMs,
    beginDurations,
    decisionDurations,
    pruner: new Pruner(part),
  };
}
