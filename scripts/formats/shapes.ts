/**
 * The types of all messages between objects, and of what is stored as JSON or signed. `types.ts` compares
 * them with those of the last release. A type must have no part that is `any`, `unknown` or `never`.
 */
import type { ConsoleSession } from "../../src/auth/console-sessions.ts";
import type { KeyPayload } from "../../src/auth/key.ts";
import type { DeclaredTypes } from "../../src/core/directory/messages.ts";
import type { Stamp } from "../../src/core/formats.ts";
import type { GrowthCopy } from "../../src/core/growth/messages.ts";
import type { StoredLoss } from "../../src/core/history.ts";
import type { IdentitySet } from "../../src/core/identities/identities.ts";
import type { ClockMark } from "../../src/core/ledger/change-times.ts";
import type { StoredExecutions } from "../../src/core/ledger/executions.ts";
import type { StoredOp } from "../../src/core/ledger/payload.ts";
import type { Applied } from "../../src/core/ledger/store.ts";
import type { TransferRecord } from "../../src/core/ledger/transfer-store.ts";
import type { SeenContradictions, StoredRemoval, Told } from "../../src/core/messages.ts";
import { directoryMethods, ledgerMethods, shardMethods } from "../../src/core/methods.ts";
import type { OperationSet } from "../../src/core/operations/operations.ts";
import type { StoredScrub } from "../../src/core/scrub/scrub.ts";
import type { StoredGrowth as SourceGrowth } from "../../src/core/shard/growth-source.ts";
import type { StoredAbort, StoredGrowth as TargetGrowth } from "../../src/core/shard/growth-target.ts";
import type { StoredEnd, StoredEntry } from "../../src/core/shard/hold-entries.ts";
import type { StoredExecution } from "../../src/core/shard/logged-changes.ts";
import type { StoredPoints } from "../../src/core/shard/shard-log.ts";
import type { StoredStatus } from "../../src/core/status.ts";
import type { StoredTables } from "../../src/core/tables.ts";

interface Shape<Value> {
  /** Only for the types, as in a `Method`. */
  readonly types?: { value: Value };
}

const shape = <Value>(): Shape<Value> => ({});

export const shapes = {
  ledger: ledgerMethods,
  shard: shardMethods,
  directory: directoryMethods,
  everyMessage: { stamp: shape<Stamp>() },
  everyAnswer: { told: shape<Told>() },
  signed: { key: shape<KeyPayload>(), consoleSession: shape<ConsoleSession>() },
  storedByParts: { tables: shape<StoredTables>(), loss: shape<StoredLoss>(), scrub: shape<StoredScrub>() },
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
