import { DurableObject } from "cloudflare:workers";
import type { AuditPage, PullAudit } from "../core/audit.ts";
import type { Directory as CoreDirectory } from "../core/directory/directory.ts";
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
  RevokedKey,
  Snapshot,
  SnapshotRequest,
  UseTypes,
} from "../core/directory/messages.ts";
import type {
  AbortGrowth,
  AskGrowth,
  Confirmed,
  ConfirmCut,
  CutGrowth,
  FinishGrowth,
  Growth,
  StartGrowth,
} from "../core/growth/messages.ts";
import type { BeginOperation, EndOperation, EndRestore } from "../core/operations/messages.ts";
import type { Operation, OperationSet } from "../core/operations/operations.ts";
import type { IdentitySet } from "../core/identities/identities.ts";
import type { VerificationSlot, VerificationSlotRequest } from "../core/directory/verification-slots.ts";
import type * as messages from "../core/messages.ts";
import type { DirectoryMetrics } from "../core/metrics/messages.ts";
import type { Env } from "../env.ts";
import type { Answer, DirectoryCalls } from "./calls.ts";
import { makeDirectory } from "./make.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The Durable Object of a deployment's directory. The protocol is in core/directory. */
export class Directory extends DurableObject<Env> implements DirectoryCalls {
  readonly #directory: CoreDirectory;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#directory = makeDirectory(portsOf(ctx), env);
  }

  confirm(message: messages.Confirm): Promise<messages.Reply<Confirmed>> {
    return this.#directory.confirm(message);
  }

  growth(message: AskGrowth): Answer<Growth | null> {
    return this.#tell(this.#directory.growth(message));
  }

  startGrowth(message: StartGrowth): Answer<Growth> {
    return this.#tell(this.#directory.startGrowth(message));
  }

  cutGrowth(message: CutGrowth): Answer<Growth> {
    return this.#tell(this.#directory.cutGrowth(message));
  }

  confirmCut(message: ConfirmCut): Answer<Growth> {
    return this.#tell(this.#directory.confirmCut(message));
  }

  abortGrowth(message: AbortGrowth): Answer<null> {
    return this.#tell(this.#directory.abortGrowth(message));
  }

  finishGrowth(message: FinishGrowth): Answer<null> {
    return this.#tell(this.#directory.finishGrowth(message));
  }

  operations(message: messages.Envelope): Answer<OperationSet> {
    return this.#tell(this.#directory.operations(message));
  }

  beginOperation(message: BeginOperation): Answer<Operation> {
    return this.#tell(this.#directory.beginOperation(message));
  }

  endOperation(message: EndOperation): Answer<null> {
    return this.#tell(this.#directory.endOperation(message));
  }

  endRestore(message: EndRestore): Answer<null> {
    return this.#tell(this.#directory.endRestore(message));
  }

  snapshot(message: SnapshotRequest): Answer<Snapshot> {
    return this.#tell(this.#directory.snapshot(message));
  }

  types(message: messages.Envelope): Answer<KnownTypes> {
    return this.#tell(this.#directory.types(message));
  }

  changeTypes(message: ChangeTypes): Answer<DeclaredTypes> {
    return this.#tell(this.#directory.changeTypes(message));
  }

  useTypes(message: UseTypes): Answer<DeclaredTypes> {
    return this.#tell(this.#directory.useTypes(message));
  }

  changeIdentities(message: ChangeIdentities): Answer<IdentitySet> {
    return this.#tell(this.#directory.changeIdentities(message));
  }

  addCell(message: NewCell): Answer<Cell> {
    return this.#tell(this.#directory.addCell(message));
  }

  changeCell(message: CellChange): Answer<Cell> {
    return this.#tell(this.#directory.changeCell(message));
  }

  removeCell(message: RemovedCell): Answer<Cell> {
    return this.#tell(this.#directory.removeCell(message));
  }

  recordKey(message: KeyChange): Answer<MintedKey> {
    return this.#tell(this.#directory.recordKey(message));
  }

  keyToRevoke(message: messages.Envelope & { keyId: string }): Answer<MintedKey | null> {
    return this.#tell(this.#directory.keyToRevoke(message));
  }

  listKeys(message: messages.Envelope & { afterPosition: number; limit: number }): Answer<KeyPage> {
    return this.#tell(this.#directory.listKeys(message));
  }

  revokeKey(message: KeyChange): Answer<MintedKey> {
    return this.#tell(this.#directory.revokeKey(message));
  }

  pullAudit(message: PullAudit): Answer<AuditPage> {
    return this.#tell(this.#directory.pullAudit(message));
  }

  revokedKeysOf(message: ListRevokedKeys): Answer<RevokedKey[]> {
    return this.#tell(this.#directory.revokedKeysOf(message));
  }

  takeSlot(message: VerificationSlotRequest): Answer<VerificationSlot> {
    return this.#tell(this.#directory.takeSlot(message));
  }

  releaseSlot(message: VerificationSlotRequest): Answer<boolean> {
    return this.#tell(this.#directory.releaseSlot(message));
  }

  compare(message: messages.ComparePoints): Answer<null> {
    return this.#tell(this.#directory.compare(message));
  }

  part(message: messages.Envelope): Answer<messages.PartStatus> {
    return this.#tell(this.#directory.part(message));
  }

  isRevoked(message: messages.Envelope & RevokedKey): Answer<boolean> {
    return this.#tell(this.#directory.isRevoked(message));
  }

  metrics(message: messages.Envelope): Answer<DirectoryMetrics> {
    return this.#tell(this.#directory.metrics(message));
  }

  reconcile(message: RestoreDirectory): Answer<DirectoryReconciliation> {
    return this.#tell(this.#directory.reconcile(message));
  }

  async #tell<T>(answer: Promise<messages.Reply<T>>): Answer<T> {
    return { ...(await answer), ...this.#directory.told() };
  }
}
