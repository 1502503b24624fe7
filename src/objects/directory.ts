import { DurableObject } from "cloudflare:workers";
import type { Directory as CoreDirectory } from "../core/directory/directory.ts";
import type { Cell, CellChange, KeyPage, MintedKey, Snapshot } from "../core/directory/messages.ts";
import type { VerificationSlot, VerificationSlotRequest } from "../core/directory/verification-slots.ts";
import type * as messages from "../core/messages.ts";
import type { Env } from "../env.ts";
import type { DirectoryCalls } from "./calls.ts";
import { makeDirectory } from "./make.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The Durable Object of a deployment's directory. The protocol is in core/directory. */
export class Directory extends DurableObject<Env> implements DirectoryCalls {
  readonly #directory: CoreDirectory;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#directory = makeDirectory(portsOf(ctx), env);
  }

  confirm(message: messages.Confirm): Promise<messages.Reply<null>> {
    return this.#directory.confirm(message);
  }

  snapshot(message: messages.Envelope): Promise<messages.Reply<Snapshot>> {
    return this.#directory.snapshot(message);
  }

  addCell(
    message: messages.Envelope & Pick<Cell, "cell" | "name" | "address" | "locationHint">,
  ): Promise<messages.Reply<Cell>> {
    return this.#directory.addCell(message);
  }

  changeCell(message: CellChange): Promise<messages.Reply<Cell>> {
    return this.#directory.changeCell(message);
  }

  recordKey(message: messages.Envelope & { key: MintedKey }): Promise<messages.Reply<MintedKey>> {
    return this.#directory.recordKey(message);
  }

  keyToRevoke(message: messages.Envelope & { keyId: string }): Promise<messages.Reply<MintedKey | null>> {
    return this.#directory.keyToRevoke(message);
  }

  listKeys(
    message: messages.Envelope & { afterPosition: number; limit: number },
  ): Promise<messages.Reply<KeyPage>> {
    return this.#directory.listKeys(message);
  }

  revokeKey(message: messages.Envelope & { key: MintedKey }): Promise<messages.Reply<MintedKey>> {
    return this.#directory.revokeKey(message);
  }

  takeSlot(message: VerificationSlotRequest): Promise<messages.Reply<VerificationSlot>> {
    return this.#directory.takeSlot(message);
  }

  releaseSlot(message: VerificationSlotRequest): Promise<messages.Reply<boolean>> {
    return this.#directory.releaseSlot(message);
  }
}
