/** What the routing layer has to reach. Each bar is counted, so none depends on the speed of the machine. */
import { measureLoad, type LoadFigures } from "./load.ts";
import { measureReports, type ReportSizes } from "./report-sizes.ts";

/** As many names as GitLab has routes, and GitLab's rates. */
const FULL = { names: 200_122, lookupsPerSecond: 40_000, changesPerSecond: 50 };
/** A twentieth of the names, the rates and the memory. Reports cost the same, so they weigh more. */
const SLICE = { names: 10_006, lookupsPerSecond: 2_000, changesPerSecond: 2.5 };

/** Room for all names. The default of 16 MiB has room for some 30,000. */
const MEMORY_BYTES = 160 * 2 ** 20;
const SLICE_MEMORY_BYTES = MEMORY_BYTES / 20;
const DEFAULT_MEMORY_BYTES = 16 * 2 ** 20;

export interface Figure {
  what: string;
  value: number;
  /** The largest value that is accepted. Undefined for a figure without a bar. */
  most?: number;
}

export const isMissed = ({ value, most }: Figure): boolean => most !== undefined && value > most;

const SHARDS = 16;

/** Ten digits, which no shard reaches in its first year at this load. Longer numbers take more bytes. */
const FIRST_POSITION = 1_000_000_000;

/** Without reports, an entry lives for 5 s. */
export const loadByAge = (countedS: number): Promise<LoadFigures> =>
  measureLoad({
    ...FULL,
    shards: SHARDS,
    reports: false,
    memoryBytes: MEMORY_BYTES,
    warmUpS: 10,
    countedS,
  });

/**
 * With reports, an entry lives for 300 s. The whole life of the entries is counted, because all that were
 * read at the start end at the same time.
 */
export const loadWithReports = (load = { ...FULL, memoryBytes: MEMORY_BYTES }): Promise<LoadFigures> =>
  measureLoad({ ...load, shards: SHARDS, reports: true, warmUpS: 300, countedS: 300 });

export const sliceWithReports = (): Promise<LoadFigures> =>
  loadWithReports({ ...SLICE, memoryBytes: SLICE_MEMORY_BYTES });

export const reportSizes = (seconds: number): ReportSizes =>
  measureReports({ shards: SHARDS, claimsPerSecond: 300, seconds, firstPosition: FIRST_POSITION });

export const figuresByAge = ({ callsPerLookup, failures }: LoadFigures): Figure[] => [
  { what: "by age: shard calls per lookup", value: callsPerLookup, most: 0.22 },
  { what: "by age: lookups without a route", value: failures, most: 0 },
];

export const figuresWithReports = (figures: LoadFigures): Figure[] => [
  { what: "with reports: shard calls per lookup", value: figures.callsPerLookup, most: 0.03 },
  { what: "with reports: reports per shard and second", value: figures.reportsPerShardAndSecond, most: 1 },
  { what: "with reports: lookups without a route", value: figures.failures, most: 0 },
];

export const figuresOfReports = ({ wholeBytes, polledBytes, tailBytes }: ReportSizes): Figure[] => [
  { what: "300 claims/s for 300 s: bytes of all pages", value: wholeBytes, most: 3_000_000 },
  { what: "300 claims/s for 300 s: bytes of a poll every second", value: polledBytes },
  { what: "300 claims/s: bytes of a poll of a shard", value: tailBytes, most: 8_192 },
];

/** Figures of the default memory, which have no bar. */
export async function figuresWithDefaultMemory(): Promise<Figure[]> {
  const { callsPerLookup, memoryBytes } = await loadWithReports({
    ...FULL,
    memoryBytes: DEFAULT_MEMORY_BYTES,
  });
  return [
    { what: "with reports and 16 MiB: shard calls per lookup", value: callsPerLookup },
    { what: "with reports and 16 MiB: bytes in use", value: memoryBytes },
  ];
}
