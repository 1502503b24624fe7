import type { Bucket, Client } from "../../../client/index.ts";
import { canonicalize } from "../../../core/canonical/canonicalize.ts";
import { shardOf } from "../../../core/placement.ts";
import { typesOf } from "../../../core/types/document.ts";
import { Types } from "../../../core/types/types.ts";
import { untilAnswered } from "../../backup/until-answered.ts";
import { CommandError } from "../../framework/command-error.ts";
import { exitCodes } from "../../framework/exit-codes.ts";
import type { Io } from "../../framework/io.ts";

/** No deployment allows longer values. */
const MAX_VALUE_BYTES = 1_024;

/** Which spellings are one name, and which shard has it, by the types of the deployment. */
export class Names {
  readonly #types: Types;
  readonly #shards: number;
  readonly sourceTypes: readonly string[];

  constructor(types: Types, shards: number) {
    this.#types = types;
    this.#shards = shards;
    this.sourceTypes = types.names("source");
  }

  keyOf = (bucket: Bucket): string => {
    const { type, canonical } = this.#canonicalOf(bucket);
    return `${type} ${canonical}`;
  };

  shardOf(bucket: Bucket): number {
    const { type, canonical } = this.#canonicalOf(bucket);
    return shardOf(type, canonical, this.#shards);
  }

  #canonicalOf({ type, value }: Bucket): { type: number; canonical: string } {
    const entry = this.#types.named("bucket", type);
    const made = entry?.rule ? canonicalize(entry.rule, value, MAX_VALUE_BYTES) : undefined;
    if (entry === undefined || made?.ok !== true)
      throw new CommandError(
        `${JSON.stringify({ type, value })} has a type that the deployment does not declare`,
        exitCodes.failed,
      );
    return { type: entry.number, canonical: made.canonical };
  }
}

export async function readNames(io: Io, client: Client, shards: number): Promise<Names> {
  const { types } = await untilAnswered(io, () => client.types.get());
  const entries = typesOf(types);
  if (!entries.ok) throw new CommandError(entries.refusal.detail, exitCodes.failed);
  return new Names(new Types(entries.value), shards);
}
