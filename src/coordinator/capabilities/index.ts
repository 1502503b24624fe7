/** What runs in objects: the kernel and the capabilities. */
import type { Capability, DirectoryHalf, LedgerHalf, ShardHalf } from "../kernel/capability.ts";
import { merged, type All } from "../kernel/merged.ts";
import type { MethodList } from "../kernel/method.ts";
import * as kernel from "../kernel/methods.ts";
import { kernelWrites, type WritePoint } from "../kernel/write-points.ts";
import { audit } from "./audit/index.ts";
import { cells } from "./cells/index.ts";
import { feed } from "./feed/index.ts";
import { growth } from "./growth/index.ts";
import { identities } from "./identities/index.ts";
import { keys } from "./keys/index.ts";
import { loss } from "./loss/index.ts";
import { operations } from "./operations/index.ts";
import { pastClaims } from "./past-claims/index.ts";
import { projection } from "./projection/index.ts";
import { reads } from "./reads/index.ts";
import { records } from "./records/index.ts";
import { removal } from "./removal/index.ts";
import { renewals } from "./renewals/index.ts";
import { reports } from "./reports/index.ts";
import { scrub } from "./scrub/index.ts";
import { slots } from "./slots/index.ts";
import { stale } from "./stale/index.ts";
import { status } from "./status/index.ts";
import { transfer } from "./transfer/index.ts";
import { types } from "./types/index.ts";
import { upgrade } from "./upgrade/index.ts";
import { waiting } from "./waiting/index.ts";

/**
 * Hooks run in the order of this list.
 *
 * - `transfer` comes before the capabilities that read its parts.
 * - `removal` comes before `keys`, so a removed cell gets `CELL_REMOVED` even if its key was revoked.
 * - `audit` comes before `cells`: without room for an audit entry, the state of the cell does not matter.
 * - `removal` comes before `loss`: it must notice that the ledger went back before `loss` takes over what the
 *   cron tells.
 */
export const capabilities = [
  transfer,
  audit,
  renewals,
  reports,
  records,
  status,
  scrub,
  removal,
  waiting,
  slots,
  cells,
  keys,
  identities,
  types,
  upgrade,
  pastClaims,
  growth,
  operations,
  loss,
  feed,
  projection,
  reads,
  stale,
] as const satisfies readonly Capability[];

interface HalfOf {
  ledger: LedgerHalf;
  shard: ShardHalf;
  directory: DirectoryHalf;
}

/** The methods that capabilities add to one kind of object. */
type Added<Kind extends keyof HalfOf, One = (typeof capabilities)[number]> =
  One extends Record<Kind, { methods: infer List }> ? List : never;

/** All methods and durable writes of one kind of object, and what the capabilities add to it. */
function compose<Kind extends keyof HalfOf, List extends MethodList>(kind: Kind, own: List) {
  const halves: Record<string, HalfOf[Kind]> = {};
  for (const capability of capabilities as readonly Capability[]) {
    const half = capability[kind] as HalfOf[Kind] | undefined;
    if (half !== undefined) halves[capability.name] = half;
  }
  const lists = [own, ...Object.values(halves).map(({ methods }) => methods)];
  const writes: readonly WritePoint[] = [
    ...kernelWrites.any,
    ...kernelWrites[kind],
    ...Object.values(halves).flatMap((half) => half.writes ?? []),
  ];
  return { methods: merged(`methods of a ${kind}`, lists) as List & All<Added<Kind>>, halves, writes };
}

export const ledger = compose("ledger", kernel.ledgerMethods);
export const shard = compose("shard", kernel.shardMethods);
export const directory = compose("directory", kernel.directoryMethods);
