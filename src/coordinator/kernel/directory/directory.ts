import { Audit, type AuditPage, type PullAudit } from "../../capabilities/audit/audit.ts";
import type { OperatorCall } from "../messages.ts";
import { cellRemoved } from "../../capabilities/removal/cell-removed.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import { History } from "../history.ts";
import {
  type ComparePoints,
  type Confirm,
  type Envelope,
  type HistoryPoint,
  type PartStatus,
  type Told,
} from "../messages.ts";
import { Tables } from "../tables.ts";
import type { DirectoryMetrics } from "../metrics/messages.ts";
import type { Ports } from "../ports.ts";
import { changedMeanwhile, ok, refused, type Refusal, type Result } from "../refusal.ts";
import type {
  AbortGrowth,
  AskGrowth,
  Confirmed,
  ConfirmCut,
  CutGrowth,
  FinishGrowth,
  Growth,
  StartGrowth,
} from "../../capabilities/growth/messages.ts";
import type { BeginOperation, EndOperation, EndRestore } from "../../capabilities/operations/messages.ts";
import type { Operation, OperationSet } from "../../capabilities/operations/operations.ts";
import { shardsOf } from "../placement.ts";
import { placementMismatch } from "../placement-guard.ts";
import type { WritePoint } from "../write-points.ts";
import { cellsOf, type IdentitySet } from "../../capabilities/identities/identities.ts";
import { cellState, keyState } from "../../capabilities/audit/audited.ts";
import {
  abortGrowth,
  confirmCut,
  finishGrowth,
  orderCut,
  startGrowth,
} from "../../capabilities/growth/directory.ts";
import { changeIdentities } from "../../capabilities/identities/directory.ts";
import type {
  Cell,
  CellChange,
  ChangeIdentities,
  ChangeTypes,
  DeclaredTypes,
  DirectoryReconciliation,
  KeyChange,
  KeyPage,
  KnownTypes,
  ListRevokedKeys,
  MintedKey,
  NewCell,
  RemovedCell,
  RestoreDirectory,
  RaiseFormat,
  RevokedKey,
  Snapshot,
  SnapshotRequest,
  UseTypes,
} from "./messages.ts";
import {
  beginOperation,
  endOperation,
  endRestore,
  runningOperations,
} from "../../capabilities/operations/directory.ts";
import type { DirectoryCalls } from "../methods.ts";
import { DirectoryReconciler } from "../../capabilities/loss/directory.ts";
import { directorySchema } from "./schema.ts";
import { DirectoryStore } from "./store.ts";
import { changeTypes, useTypes } from "../../capabilities/types/directory.ts";
import {
  VerificationSlots,
  type VerificationSlot,
  type VerificationSlotRequest,
} from "../../capabilities/slots/directory.ts";

/** The positions of what D1 has copies of, read before the message was sent. */
interface CopiedPositions {
  /** Of the set of types (T6). */
  copiedAt?: number;
  /** Of the growth (G2). */
  growthCopiedAt?: number;
}

/**
 * Stores what must never differ between machines: the placement, the cells and the keys. A begin, commit or
 * rollback does not need it, except at the first use of a ledger or shard.
 */
export class Directory implements DirectoryCalls {
  readonly #part: DirectoryPart;

  constructor(ports: Ports, limits: Limits) {
    this.#part = makePart(ports, limits);
  }

  /**
   * Answers the placement in force (P1), whatever that of the message is. There is none before the first cell
   * is registered, because only that fixes it (P2).
   */
  confirm(message: Confirm): Promise<Result<Confirmed>> {
    const work = (): Result<Confirmed> => {
      if (message.cell !== undefined && this.#part.store.cell(message.cell) === undefined) {
        return refused(
          "PERMISSION_DENIED",
          `cell ${message.cell} is not registered; an operator must add it`,
          { reason: "CELL_UNKNOWN" },
        );
      }
      const { placement, growth } = this.#part.store;
      if (placement === undefined)
        return refused("UNAVAILABLE", "no cell is registered yet; an operator must register the first one", {
          reason: "NO_CELLS",
        });
      return ok({ placement, growth });
    };
    // An object asks again when it meets another placement than its own (G3).
    const { placement = message.placement } = this.#part.store;
    return this.#read({ ...message, placement }, work);
  }

  snapshot(message: SnapshotRequest): Promise<Result<Snapshot>> {
    return this.#read(message, () => {
      // No clock determines which keys are left out: a clock that is ahead for some time would let revoked
      // keys in (A1).
      const { limits, store } = this.#part;
      const { maxRevokedKeys } = limits;
      const revoked = store.revokedKeys(maxRevokedKeys + 1);
      return ok({
        placement: store.placement ?? message.placement,
        growth: store.growth,
        point: this.#pointOfRows,
        isPlaced: store.placement !== undefined,
        cells: store.cells(),
        revokedKeys: revoked.slice(0, maxRevokedKeys).map(({ keyId }) => keyId),
        revokedThroughMs: Math.max(store.revokedThroughMs, revoked[maxRevokedKeys]?.expiresAtMs ?? 0),
        types: message.typesPosition === store.types.position ? null : store.types,
        identities: message.identitiesPosition === store.identities.position ? null : store.identities,
      });
    });
  }

  addCell(message: NewCell): Promise<Result<Cell>> {
    return this.#operate("add_cell", message, () => {
      const known = this.#part.store.cell(message.cell);
      if (known !== undefined) return known.removedAtMs === null ? cellExists(known) : idOfRemovedCell(known);
      const full = this.#refuseOneMoreCell();
      if (full !== undefined) return { ok: false, refusal: full };
      const { cell, name, address, locationHint } = message;
      const now = this.#now();
      if (this.#part.store.placement === undefined) {
        this.#part.store.setPlacement(message.placement);
        // A new deployment has nothing of an older format (M9).
        this.#part.tables.raise(this.#part.tables.stamp.speaks);
      }
      const added = {
        cell,
        name,
        address,
        locationHint,
        createdAtMs: now,
        updatedAtMs: now,
        removedAtMs: null,
      };
      this.#part.store.putCell(added);
      this.#part.audit.append(message.operator, {
        action: "add_cell",
        cell,
        target: cell,
        before: null,
        after: cellState(added),
      });
      return ok(added);
    });
  }

  /**
   * Changes a cell, based on the version with `updatedAtMs`. If the cell has changed since, the change is
   * refused (A2).
   */
  changeCell(message: CellChange): Promise<Result<Cell>> {
    return this.#operate("change_cell", message, () => {
      const before = this.#part.store.cell(message.cell);
      if (before === undefined) return cellUnknown(message.cell);
      if (before.removedAtMs !== null) return cellRemoved(message.cell);
      const { name = before.name, address = before.address } = message;
      const isSame = name === before.name && address === before.address;
      if (before.updatedAtMs !== message.updatedAtMs && !isSame)
        return changedMeanwhile(`cell ${message.cell}`);
      // A change that changes nothing also makes a new version, so that messages sent before it are refused
      // afterwards (A2).
      const after: Cell = {
        ...before,
        name,
        address,
        updatedAtMs: Math.max(this.#now(), before.updatedAtMs + 1),
      };
      this.#part.store.putCell(after);
      if (!isSame)
        this.#part.audit.append(message.operator, {
          action: "change_cell",
          cell: after.cell,
          target: after.cell,
          before: cellState(before),
          after: cellState(after),
        });
      return ok(after);
    });
  }

  /**
   * Marks a cell as removed, because its ledger has said so (X5). Idempotent: the first message has an audit
   * entry, and the time in it stays.
   */
  removeCell(message: RemovedCell): Promise<Result<Cell>> {
    return this.#operate("mark_cell_removed", message, () => {
      const { cell, removedAtMs, operator } = message;
      const before = this.#part.store.cell(cell);
      if (before === undefined) return cellUnknown(cell);
      if (before.removedAtMs !== null) return ok(before);
      const updatedAtMs = Math.max(this.#now(), before.updatedAtMs + 1);
      const after: Cell = { ...before, removedAtMs, updatedAtMs };
      this.#part.store.putCell(after);
      this.#part.slots.forget(cell);
      this.#part.audit.append(operator, {
        action: "remove_cell",
        cell,
        target: cell,
        before: { removed_at_ms: null },
        after: { removed_at_ms: removedAtMs },
      });
      return ok(after);
    });
  }

  /** Replaces the set of types, based on the one that the operator has read (T3). */
  changeTypes(message: ChangeTypes): Promise<Result<DeclaredTypes>> {
    return this.#operate("change_types", message, () => changeTypes(this.#part, message));
  }

  /** Marks types as in use (T2). Idempotent. */
  useTypes(message: UseTypes): Promise<Result<DeclaredTypes>> {
    return this.#change("use_types", message, () => useTypes(this.#part.store, message));
  }

  /** Replaces the identities, based on those that the operator has read (A4). */
  changeIdentities(message: ChangeIdentities): Promise<Result<IdentitySet>> {
    return this.#operate("change_identities", message, () => {
      for (const cell of cellsOf(message.identities)) {
        const unfit = this.#refuseWithoutCell(cell);
        if (unfit !== undefined) return { ok: false, refusal: unfit };
      }
      return changeIdentities(this.#part, message);
    });
  }

  /** Returns the growth that runs. Null: none. */
  growth(message: AskGrowth): Promise<Result<Growth | null>> {
    return this.#read(message, () => ok(this.#part.store.growth));
  }

  /** Starts to get more shards (G1). */
  startGrowth(message: StartGrowth): Promise<Result<Growth>> {
    const id = this.#part.ports.randomness.uuid();
    return this.#operate("start_growth", message, () => startGrowth(this.#part, message, id, this.#now()));
  }

  /** Orders the cut, after which the growth can't be aborted. */
  cutGrowth(message: CutGrowth): Promise<Result<Growth>> {
    return this.#operate("order_cut", message, () => orderCut(this.#part, message, this.#now()));
  }

  /** Puts the new placement in force, once D1 has a copy of the growth (G2). Idempotent. */
  confirmCut(message: ConfirmCut): Promise<Result<Growth>> {
    // A repeated message may have either placement.
    const { growth, placement = message.placement } = this.#part.store;
    const isRepeated = growth?.id === message.id && growth.phase === "cut";
    return this.#change("confirm_cut", isRepeated ? { ...message, placement } : message, () =>
      confirmCut(this.#part.store, message),
    );
  }

  /** Ends a growth that was not cut. */
  abortGrowth(message: AbortGrowth): Promise<Result<null>> {
    return this.#operate("abort_growth", message, () => abortGrowth(this.#part, message));
  }

  /** Ends a growth that all shards have carried out. Idempotent. */
  finishGrowth(message: FinishGrowth): Promise<Result<null>> {
    return this.#change("finish_growth", message, () => finishGrowth(this.#part.store, message));
  }

  /** Returns the operations that run, and how far the directory is with them. */
  operations(message: Envelope): Promise<Result<OperationSet>> {
    return this.#read(message, () =>
      ok({ position: this.#part.store.operations.position, operations: runningOperations(this.#part.store) }),
    );
  }

  /** Begins an operation, unless another one is in its way (A5). Idempotent. */
  beginOperation(message: BeginOperation): Promise<Result<Operation>> {
    return this.#change("begin_operation", message, () => beginOperation(this.#part, message, this.#now()));
  }

  /** Ends an operation of which its part says that it has ended (A6). Idempotent. */
  endOperation(message: EndOperation): Promise<Result<null>> {
    return this.#change("end_operation", message, () => endOperation(this.#part.store, message));
  }

  /** Ends a restore, because the operator says so. Idempotent. */
  endRestore(message: EndRestore): Promise<Result<null>> {
    return this.#operate("end_operation", message, () => endRestore(this.#part, message));
  }

  /** Stores what describes a minted key, without the key itself. */
  recordKey(message: KeyChange): Promise<Result<MintedKey>> {
    return this.#operate("record_key", message, () => {
      const { key } = message;
      const unfit = key.cell === null ? undefined : this.#refuseWithoutCell(key.cell);
      if (unfit !== undefined) return { ok: false, refusal: unfit };
      // The message may arrive twice, and the key may be revoked in between.
      const stored = this.#part.store.key(key.keyId);
      if (stored !== undefined) return ok(stored);
      const full = this.#refuseIfNoRoom();
      if (full !== undefined) return { ok: false, refusal: full };
      this.#putKey(key);
      this.#part.audit.append(message.operator, {
        action: "mint_key",
        cell: key.cell,
        target: key.keyId,
        before: null,
        after: keyState(key),
      });
      return ok(key);
    });
  }

  /**
   * Returns the stored description of a key that is to be revoked, or null for a key that was minted
   * elsewhere. Refuses if there is no room for one more revoked key, or for the audit entry (O3), before the
   * revocation is acknowledged anywhere.
   */
  keyToRevoke(message: Envelope & { keyId: string }): Promise<Result<MintedKey | null>> {
    return this.#read(message, () => {
      const key = this.#part.store.key(message.keyId) ?? null;
      const full =
        this.#part.audit.refusal ??
        this.#refuseIfFull(key) ??
        (key === null ? this.#refuseIfNoRoom() : undefined);
      return full === undefined ? ok(key) : { ok: false, refusal: full };
    });
  }

  /**
   * Lists keys in the order of their last changes, oldest first, because only this order can be continued
   * with a position.
   */
  listKeys(message: Envelope & { afterPosition: number; limit: number }): Promise<Result<KeyPage>> {
    return this.#read(message, () => {
      const rows = this.#part.store.keysAfter(message.afterPosition, message.limit + 1);
      return ok({
        point: this.#pointOfRows,
        keys: rows.slice(0, message.limit),
        more: rows.length > message.limit,
      });
    });
  }

  revokedKeysOf(message: ListRevokedKeys): Promise<Result<RevokedKey[]>> {
    return this.#read(message, () => ok(this.#part.store.revokedKeysOf(message.cell, message.limit)));
  }

  /**
   * Revokes a key. Idempotent. `key` describes the key, so that a key that was minted elsewhere can also be
   * revoked.
   */
  revokeKey(message: KeyChange): Promise<Result<MintedKey>> {
    return this.#operate("revoke_key", message, () => {
      const known = this.#part.store.key(message.key.keyId);
      const stored = known ?? message.key;
      // For a key that was minted elsewhere, the cell is only what the caller says, so a later call may
      // correct it.
      if (stored.revokedAtMs !== null && stored.cell === message.key.cell) return ok(stored);
      const full = this.#refuseIfFull(stored) ?? (known ? undefined : this.#refuseIfNoRoom());
      if (full !== undefined) return { ok: false, refusal: full };
      const key = {
        ...stored,
        role: message.key.role,
        cell: message.key.cell,
        revokedAtMs: stored.revokedAtMs ?? this.#now(),
      };
      this.#putKey(key);
      this.#part.audit.append(message.operator, {
        action: "revoke_key",
        cell: key.cell,
        target: key.keyId,
        before: known === undefined ? null : keyState(known),
        after: keyState(key),
      });
      return ok(key);
    });
  }

  /** Puts a format in force, for the caller to tell it to all parts (M9). Idempotent. */
  raiseFormat(message: RaiseFormat): Promise<Result<null>> {
    const { operator, raiseTo } = message;
    return this.#operate("raise_format", message, () => {
      const { speaks, format } = this.#part.tables.stamp;
      if (raiseTo > speaks)
        return refused("FAILED_PRECONDITION", `the directory speaks format ${speaks}`, {
          reason: "UPGRADE_BLOCKED",
        });
      if (raiseTo <= format) return ok(null);
      this.#part.tables.raise(raiseTo);
      this.#part.audit.append(operator, {
        action: "finish_upgrade",
        cell: null,
        target: "format",
        before: { format },
        after: { format: raiseTo },
      });
      return ok(null);
    });
  }

  /** Returns the audit entries that were not copied yet, and drops those that were (O2). */
  async pullAudit(message: PullAudit): Promise<Result<AuditPage>> {
    const { copied, limit } = message;
    if (copied !== null) {
      const forgotten = await this.#change("forget_audit", message, () => {
        this.#part.audit.forget(copied);
        return ok(null);
      });
      if (!forgotten.ok) return forgotten;
    }
    return this.#read(message, () => ok(this.#part.audit.page(limit)));
  }

  async takeSlot(message: VerificationSlotRequest): Promise<Result<VerificationSlot>> {
    const refusal = await this.#refusalOf(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // The queue has one place for each registered cell, so `maxCells` bounds it.
    const unfit = this.#refuseWithoutCell(message.cell);
    return unfit === undefined ? this.#part.slots.take(message) : { ok: false, refusal: unfit };
  }

  /** Releases a slot. Idempotent. Returns whether the run had one. */
  async releaseSlot(message: VerificationSlotRequest): Promise<Result<boolean>> {
    const refusal = await this.#refusalOf(message);
    return refusal === undefined ? this.#part.slots.release(message) : { ok: false, refusal };
  }

  /** Compares what ledgers have seen of this directory with its history (H2). Success confirms all points. */
  compare(message: ComparePoints): Promise<Result<null>> {
    return this.#read(message, () => {
      for (const { noticedBy, point } of message.points) {
        const refusal = this.#part.history.refuse(point, noticedBy);
        if (refusal !== undefined) return { ok: false, refusal };
      }
      return ok(null);
    });
  }

  get tables(): Tables {
    return this.#part.tables;
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    const { point } = this.#part.history;
    return point === undefined ? {} : { point };
  }

  // The calls below are also answered by a directory that has gone back in time.

  /** Returns what this directory knows of its own history. */
  part(message: Envelope): Promise<Result<PartStatus>> {
    return this.#answerAlways(message, async () => this.#durable(ok(this.#part.history.status)));
  }

  /** Returns counts for monitoring. It writes nothing. */
  metrics(message: Envelope): Promise<Result<DirectoryMetrics>> {
    return this.#answerAlways(message, async () =>
      ok({
        startedAtMs: this.#part.startedAtMs,
        state: this.#part.history.state,
        sizeBytes: this.#part.ports.sql.sizeBytes(),
        waitingWrites: this.#part.commits.waiting,
        cells: this.#countCells(),
        ...this.#part.store.countAllKeys(),
        ...this.#part.slots.counts(),
      }),
    );
  }

  /**
   * Returns the set of types. A type in use never changes (T2), so what is left of these after a loss is
   * still true. Nothing else is (T6).
   */
  types(message: Envelope): Promise<Result<KnownTypes>> {
    return this.#answerAlways(message, async () => {
      const { types } = this.#part.store;
      const { isLost } = this.#part.history;
      const entries = types.entries.filter(({ isInUse }) => isInUse || !isLost);
      return this.#durable(ok({ ...types, entries, isComplete: !isLost }));
    });
  }

  /** Returns whether a key is revoked, or may be (A1), according to the rows that are left. */
  isRevoked(message: Envelope & RevokedKey): Promise<Result<boolean>> {
    return this.#answerAlways(message, async () => {
      const { keyId, expiresAtMs } = message;
      const isListed = (this.#part.store.key(keyId)?.revokedAtMs ?? null) !== null;
      return this.#durable(ok(isListed || expiresAtMs <= this.#part.store.revokedThroughMs));
    });
  }

  /** Takes over what copies of the lost rows still have, and accepts the loss (H8). */
  reconcile(message: RestoreDirectory): Promise<Result<DirectoryReconciliation>> {
    return this.#answerAlways(message, () => this.#part.reconciler.reconcile(message));
  }

  async #answerAlways<T>(message: Envelope, work: () => Promise<Result<T>>): Promise<Result<T>> {
    // A directory that went back may have an older placement than all others (G2), noticed or not.
    const mayBeLost = this.#part.history.isLost || this.#hasFewerShards(message);
    const refusal = mayBeLost ? undefined : this.#refusePlacement(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (this.#part.history.isLost) await this.#part.ports.sql.flush();
    return work();
  }

  /** Answers from the rows, once they are durable and if the history was not found to be lost meanwhile. */
  async #read<T>(message: Envelope, work: () => Result<T>): Promise<Result<T>> {
    const before = await this.#refusalOf(message);
    if (before !== undefined) return { ok: false, refusal: before };
    const reply = await this.#durable(work());
    const { refusal } = this.#part.history;
    return refusal === undefined ? reply : { ok: false, refusal };
  }

  /** Carries out an operator's change, if there is room for its audit entry (O3). */
  #operate<T>(point: WritePoint, message: OperatorCall, work: () => Result<T>): Promise<Result<T>> {
    return this.#change(point, message, () => {
      const full = this.#part.audit.refusal;
      return full === undefined ? work() : { ok: false, refusal: full };
    });
  }

  async #change<T>(point: WritePoint, message: Envelope, work: () => Result<T>): Promise<Result<T>> {
    const before = await this.#refusalOf(message);
    if (before !== undefined) return { ok: false, refusal: before };
    return this.#part.commits.submit(point, () => {
      // Another first cell may have been registered during the wait, with another placement (M1, P2).
      const refusal = this.#refusePlacement(message);
      return refusal === undefined ? work() : { ok: false, refusal };
    });
  }

  /**
   * Returns why a message is refused that does not fit, or whose sender has seen more than this directory
   * has. A loss is durable before anybody is told of it (H4). It comes before a placement that does not fit,
   * because a directory that went back may have an older one than its callers (G2).
   */
  async #refusalOf(message: Envelope & CopiedPositions): Promise<Refusal | undefined> {
    const refusal =
      this.#part.history.refuse(message.seen, "a caller") ??
      this.#refuseOlderTypes(message) ??
      this.#refuseOlderGrowth(message) ??
      this.#refusePlacement(message);
    if (this.#part.history.isLost) await this.#part.ports.sql.flush();
    return refusal;
  }

  /** D1 only gets sets that were durable here, so a set that is older than its copy is from before a loss. */
  #refuseOlderTypes({ copiedAt = 0 }: CopiedPositions): Refusal | undefined {
    return copiedAt > this.#part.store.types.position
      ? this.#part.history.refuseBehind("the copy of the types in D1")
      : undefined;
  }

  /** D1 only gets growths that were durable here (G2). */
  #refuseOlderGrowth({ growthCopiedAt = 0 }: CopiedPositions): Refusal | undefined {
    return growthCopiedAt > this.#part.store.growthPosition
      ? this.#part.history.refuseBehind("the copy of the growth in D1")
      : undefined;
  }

  #countCells(): number {
    const { ids, removed } = this.#part.store.countCells();
    return ids - removed;
  }

  /** Returns why a cell has no room. A removed cell only takes up its id, which is never used again (X5). */
  #refuseOneMoreCell(): Refusal | undefined {
    const { maxCells, maxCellIds } = this.#part.limits;
    if (this.#countCells() >= maxCells)
      return refused(
        "RESOURCE_EXHAUSTED",
        `the deployment has reached its limit of ${maxCells} cells (LEASEHOLD_MAX_CELLS)`,
      ).refusal;
    if (this.#part.store.countCells().ids < maxCellIds) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `${maxCellIds} cells were registered, removed ones included, which is the limit ` +
        "(LEASEHOLD_MAX_CELL_IDS)",
    ).refusal;
  }

  /** Returns why a call of or for a cell is refused: it is not registered, or removed. */
  #refuseWithoutCell(cell: string): Refusal | undefined {
    const known = this.#part.store.cell(cell);
    if (known === undefined) return cellUnknown(cell).refusal;
    return known.removedAtMs === null ? undefined : cellRemoved(cell).refusal;
  }

  /** Returns why one more revoked key has no room. A key that is already revoked needs no room. */
  #refuseIfFull(key: MintedKey | null): Refusal | undefined {
    if (key !== null && key.revokedAtMs !== null) return undefined;
    const revoked = this.#part.store.countRevokedKeys(this.#now());
    if (revoked < this.#part.limits.maxRevokedKeys) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `${this.#part.limits.maxRevokedKeys} revoked keys have not expired yet, which is the limit; ` +
        "rotate the signing secret",
    ).refusal;
  }

  /** Returns why one more key has no room. Expired keys can be forgotten, so they take no room. */
  #refuseIfNoRoom(): Refusal | undefined {
    const { maxKeys } = this.#part.limits;
    if (this.#part.store.countKeys(this.#now()) < maxKeys) return undefined;
    return refused(
      "RESOURCE_EXHAUSTED",
      `${maxKeys} keys have not expired yet, which is the limit (LEASEHOLD_MAX_KEYS)`,
    ).refusal;
  }

  #putKey(key: MintedKey): void {
    this.#part.store.putKey(key);
    this.#part.store.forgetKeys(this.#now(), this.#part.limits.maxKeys);
  }

  /** Until the first cell is registered, no placement is fixed, and all fit (P2). */
  #refusePlacement({ placement }: Envelope): Refusal | undefined {
    const kept = this.#part.store.placement;
    return kept === undefined || kept === placement ? undefined : placementMismatch(kept, placement);
  }

  #hasFewerShards({ placement }: Envelope): boolean {
    const kept = this.#part.store.placement;
    return kept !== undefined && shardsOf(kept) < shardsOf(placement);
  }

  get #pointOfRows(): HistoryPoint | null {
    return this.#part.history.pointOfRows(this.#part.store.position) ?? null;
  }

  #now(): number {
    return this.#part.ports.clock.now();
  }

  async #durable<T>(reply: Result<T>): Promise<Result<T>> {
    await this.#part.ports.sql.flush();
    return reply;
  }
}

type DirectoryPart = ReturnType<typeof makePart>;

/** Makes the parts in their order. One that needs a later one does not compile, except in a closure. */
function makePart(ports: Ports, limits: Limits) {
  const tables = new Tables(ports, directorySchema);
  const startedAtMs = ports.clock.now();
  const store = new DirectoryStore(ports.sql);
  const history = new History(ports, "the directory", store.position);
  const commits = new GroupCommit(
    ports,
    history,
    () => {
      if (store.storePosition()) history.raise();
    },
    () => history.madeDurable(store.position),
  );
  const audit = new Audit(ports, limits, "the directory");
  const part = { ports, tables, limits, startedAtMs, store, history, commits, audit };
  return { ...part, slots: new VerificationSlots(part), reconciler: new DirectoryReconciler(part) };
}

const cellExists = ({ cell }: Cell): { ok: false; refusal: Refusal } =>
  refused("ALREADY_EXISTS", `cell ${cell} is already registered`, { reason: "CELL_EXISTS" });

const idOfRemovedCell = ({ cell }: Cell): { ok: false; refusal: Refusal } =>
  refused(
    "FAILED_PRECONDITION",
    `cell ${cell} was removed, and its id is never used again; register the new cell with another id`,
    { reason: "CELL_REMOVED", field: "cell_id" },
  );

const cellUnknown = (cell: string): { ok: false; refusal: Refusal } =>
  refused("NOT_FOUND", `cell ${cell} is not registered; an operator must add it`, { reason: "CELL_UNKNOWN" });
