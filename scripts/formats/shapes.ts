/**
 * The types of all messages between objects, and of what is stored as JSON or signed. `types.ts` compares
 * them with those of the last release. A type must have no part that is `any`, `unknown` or `never`.
 */
import type { ConsoleSession } from "../../src/coordinator/auth/console-sessions.ts";
import type { KeyPayload } from "../../src/coordinator/auth/key.ts";
import type { DeclaredTypes } from "../../src/coordinator/capabilities/types/messages.ts";
import type { Stamp } from "../../src/coordinator/kernel/formats.ts";
import type { GrowthCopy } from "../../src/coordinator/capabilities/growth/messages.ts";
import type { StoredLoss } from "../../src/coordinator/capabilities/loss/history.ts";
import type { IdentitySet } from "../../src/coordinator/capabilities/identities/identities.ts";
import type { ClockMark } from "../../src/coordinator/kernel/ledger/change-times.ts";
import type { StoredExecutions } from "../../src/coordinator/kernel/ledger/executions.ts";
import type { StoredOp } from "../../src/coordinator/kernel/ledger/payload.ts";
import type { Applied } from "../../src/coordinator/kernel/ledger/store.ts";
import type { TransferRecord } from "../../src/coordinator/capabilities/transfer/ledger-store.ts";
import type { Told } from "../../src/coordinator/kernel/messages.ts";
import type { StoredRemoval } from "../../src/coordinator/capabilities/removal/messages.ts";
import * as kinds from "../../src/coordinator/capabilities/index.ts";
import type { OperationSet } from "../../src/coordinator/capabilities/operations/operations.ts";
import type { StoredScrub } from "../../src/coordinator/capabilities/scrub/scrub.ts";
import type { StoredGrowth as SourceGrowth } from "../../src/coordinator/capabilities/growth/source.ts";
import type {
  StoredAbort,
  StoredGrowth as TargetGrowth,
} from "../../src/coordinator/capabilities/growth/target.ts";
import type { StoredEnd, StoredEntry } from "../../src/coordinator/kernel/shard/hold-entries.ts";
import type { StoredExecution } from "../../src/coordinator/capabilities/feed/logged-changes.ts";
import type { StoredPoints } from "../../src/coordinator/kernel/shard/sightings.ts";
import type { SeenContradictions } from "../../src/coordinator/capabilities/status/messages.ts";
import type { StoredStatus } from "../../src/coordinator/capabilities/status/status.ts";
import type { DoneSteps, StoredTables } from "../../src/coordinator/kernel/tables.ts";

interface Shape<Value> {
  /** Only for the types, as in a `Method`. */
  readonly types?: { value: Value };
}

const shape = <Value>(): Shape<Value> => ({});

export const shapes = {
  ledger: kinds.ledger.methods,
  shard: kinds.shard.methods,
  directory: kinds.directory.methods,
  everyMessage: { stamp: shape<Stamp>() },
  everyAnswer: { told: shape<Told>() },
  signed: { key: shape<KeyPayload>(), consoleSession: shape<ConsoleSession>() },
  storedByParts: {
    tables: shape<StoredTables>(),
    capabilitySteps: shape<DoneSteps>(),
    loss: shape<StoredLoss>(),
    scrub: shape<StoredScrub>(),
  },
  storedByLedgers: {
    op: shape<StoredOp>(),
    executions: shape<StoredExecutions>(),
    applied: shape<Applied>(),
    clockMark: shape<ClockMark>(),
    contradictions: shape<SeenContradictions>(),
    removal: shape<StoredRemoval>(),
    status: shape<StoredStatus>(),
    transfer: shape<TransferRecord>(),
  },
  storedByShards: {
    holdEntry: shape<StoredEntry>(),
    holdEnd: shape<StoredEnd>(),
    execution: shape<StoredExecution>(),
    ledgers: shape<StoredPoints>(),
    growthAway: shape<SourceGrowth>(),
    growthHere: shape<TargetGrowth>(),
    abortedGrowth: shape<StoredAbort>(),
  },
  storedByDirectory: {
    types: shape<DeclaredTypes>(),
    identities: shape<IdentitySet>(),
    operations: shape<OperationSet>(),
    growth: shape<GrowthCopy>(),
  },
};
