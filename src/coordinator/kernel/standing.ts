import type { HistoryPoint } from "./messages.ts";
import type { Refusal } from "./refusal.ts";

/** Whether a part may work. Without a capability for that, it always may. */
export interface Standing {
  /** Why the part refuses what it doesn't always answer. Meanwhile it changes nothing. */
  readonly stopped: Refusal | undefined;
  /** Why a shard refuses prepares that repair nothing. A name that it does not have may be taken. */
  readonly incomplete: Refusal | undefined;
  /**
   * Compares a point of this part that somebody has seen with what is here (H4). Returns why the part must
   * refuse.
   *
   * @param noticedBy who has seen it, such as `cell 1`
   */
  admit(seen: HistoryPoint | null | undefined, noticedBy: string): Refusal | undefined;
  /** To be called when somebody knows more than is stored here. Returns why the part must refuse. */
  behind(noticedBy: string): Refusal | undefined;
  /** Must be called in the transaction that stores what an incomplete part has sent. */
  inherit(from: string): void;
}

export const alwaysWorks: Standing = {
  stopped: undefined,
  incomplete: undefined,
  admit: () => undefined,
  behind: () => undefined,
  inherit: () => {},
};
