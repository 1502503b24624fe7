/** What an endpoint can be told of. Each event has a rule (`rules/`). */
export const webhookEvents = [
  "stale_leases",
  "history_lost",
  "contradiction",
  "cell_silent",
  "cell_drift",
  "cron_failed",
  "credential_expiring",
] as const;

export type WebhookEvent = (typeof webhookEvents)[number];

/** The thresholds that an operator can set, and the unit of each. */
export const thresholdTable = {
  stale_leases: { default: 1, min: 1, max: 1_000, about: "Stale leases of one cell." },
  cell_silent: { default: 15, min: 1, max: 10_080, about: "Minutes without a report of a cell." },
  cell_drift: { default: 1, min: 1, max: 1_000_000, about: "Drifts of one kind in a cell." },
  credential_expiring: {
    default: 7,
    min: 1,
    max: 400,
    about: "Days until a key, certificate or authority expires.",
  },
} as const satisfies Partial<
  Record<WebhookEvent, { default: number; min: number; max: number; about: string }>
>;

export type Threshold = keyof typeof thresholdTable;

export type Thresholds = Partial<Record<Threshold, number>>;

/** The threshold of an event for one endpoint. 0 for an event that has none. */
export function thresholdOf(event: WebhookEvent, given: Thresholds): number {
  if (!(event in thresholdTable)) return 0;
  const name = event as Threshold;
  return given[name] ?? thresholdTable[name].default;
}
