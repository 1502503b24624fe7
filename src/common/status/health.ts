/**
 * The counts of a verification that are drift. They don't add up: a drift that turns out to be a second row
 * with the same name is in `missing` or `different`, and in `duplicates`. Names of other cells are in
 * `missing` or `different` too.
 */
export const driftKinds = ["missing", "different", "extra", "duplicates", "unnameable"] as const;

/** What a verification found, by kind. */
export type Drift = Readonly<Record<(typeof driftKinds)[number], number>>;

/** The part of a reported status that says what a verification found. */
export interface ReportedStatus {
  verification?:
    | { counts?: { readonly [Kind in (typeof driftKinds)[number]]?: number | undefined } | undefined }
    | undefined;
}

/**
 * A cell with `startReconciling` reports every minute, so many reports have failed then. It is also longer
 * than a deployment of the cell takes.
 */
const SILENT_MS = 15 * 60_000;

export const isSilent = (ageMs: number): boolean => ageMs > SILENT_MS;

/** Null: no verification was reported, or without its counts. */
export function driftOf(status: ReportedStatus | null): Drift | null {
  const counts = status?.verification?.counts;
  if (counts === undefined) return null;
  return Object.fromEntries(driftKinds.map((kind) => [kind, counts[kind] ?? 0])) as Drift;
}

export const hasDrift = (drift: Drift | null): boolean =>
  drift !== null && driftKinds.some((kind) => drift[kind] > 0);

/** Such as `3 missing, 1 extra`. Empty: there is no drift. */
export const driftText = (drift: Drift | null): string =>
  drift === null
    ? ""
    : driftKinds.flatMap((kind) => (drift[kind] > 0 ? [`${drift[kind]} ${kind}`] : [])).join(", ");
