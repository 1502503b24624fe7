import { DurableObject } from "cloudflare:workers";
import { Directory as CoreDirectory, type Cell, type CellChange, type KeyPage, type MintedKey, type Snapshot } from "../core/directory/directory.ts";
import type * as messages from "../core/messages.ts";
import { configOf, type Env } from "../env.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The one directory of a deployment. All it does is in core/directory. */
export class Directory extends DurableObject<Env> {
  readonly #directory: CoreDirectory;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#directory = new CoreDirectory(portsOf(ctx), configOf(env).limits);
  }

  confirm(message: messages.Confirm): Promise<messages.Reply<null>> {
    return this.#directory.confirm(message);
  }

  snapshot(message: messages.Envelope): Promise<messages.Reply<Snapshot>> {
    return this.#directory.snapshot(message);
  }

  addCell(message: messages.Envelope & Pick<Cell, "cell" | "name" | "address" | "locationHint">): Promise<messages.Reply<Cell>> {
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

  listKeys(message: messages.Envelope & { afterPosition: number; limit: number }): Promise<messages.Reply<KeyPage>> {
    return this.#directory.listKeys(message);
  }

  revokeKey(message: messages.Envelope & { key: MintedKey }): Promise<messages.Reply<MintedKey>> {
    return this.#directory.revokeKey(message);
  }
}
