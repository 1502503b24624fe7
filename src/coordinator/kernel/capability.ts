import type { DirectoryHooks } from "./directory/hooks.ts";
import type { DirectoryPart } from "./directory/part.ts";
import type { Half } from "./half.ts";
import type { LedgerHooks } from "./ledger/hooks.ts";
import type { LedgerPart } from "./ledger/part.ts";
import type { MethodList } from "./method.ts";
import type { ShardHooks } from "./shard/hooks.ts";
import type { ShardPart } from "./shard/part.ts";

/** What runs in objects besides the kernel: a folder of its own that can be taken out. */
export interface Capability {
  readonly name: string;
  /** The capabilities that it imports. */
  readonly needs?: readonly string[];
  readonly ledger?: LedgerHalf;
  readonly shard?: ShardHalf;
  readonly directory?: DirectoryHalf;
}

export type LedgerHalf<List extends MethodList = MethodList> = Half<LedgerPart, LedgerHooks, List>;
export type ShardHalf<List extends MethodList = MethodList> = Half<ShardPart, ShardHooks, List>;
export type DirectoryHalf<List extends MethodList = MethodList> = Half<DirectoryPart, DirectoryHooks, List>;
