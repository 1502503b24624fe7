import type {
  Envelope,
  Exchange,
  ExchangeAnswer,
  HistoryPoint,
  Remembered,
  SettleAnswer,
} from "../messages.ts";
import type { Refusal } from "../refusal.ts";
import type { Applied } from "./store.ts";

/** How far a ledger and other parts have seen each other. Without a capability, nobody compares that. */
export interface Sightings {
  /** What a message tells a shard that this ledger has seen of it. */
  of(shard: number): { seen?: HistoryPoint };
  /**
   * How far this ledger has got, as an exchange tells it.
   *
   * @param unchecked - what a shard has answered that has carried out nothing
   */
  own(shard: number, unchecked?: ExchangeAnswer): Pick<Exchange, "point" | "confirmed">;
  /**
   * Compares what a shard has seen of this ledger. Returns why the ledger must refuse (H4). An answer with a
   * `point` is that of an exchange, and the shard counts as compared.
   */
  compare(shard: number, answer: Pick<ExchangeAnswer, "seen"> & Partial<ExchangeAnswer>): Refusal | undefined;
  /** Takes over how far a shard has got. */
  see(shard: number, answer: Pick<SettleAnswer, "point">, sent: Envelope): void;
  /** The newest incarnation with which a shard has answered; 0: not known. */
  incarnationOf(shard: number): number;
  /** Compares with all shards. Returns why the ledger must refuse, or which shard has not told. */
  compareAll(): Promise<Refusal | undefined>;
  /** Whether the ledger has stored all of it, as far as nothing else stores it. */
  readonly isStored: boolean;
  /** What is stored with the applied position. */
  stored(): Partial<Applied>;
  /** What the cron compares. */
  remembered(): Remembered;
}

export const noSightings: Sightings = {
  of: () => ({}),
  own: () => ({ point: null, confirmed: null }),
  compare: () => undefined,
  see: () => {},
  incarnationOf: () => 0,
  compareAll: () => Promise.resolve(undefined),
  isStored: true,
  stored: () => ({}),
  remembered: () => ({}) as Remembered,
};
