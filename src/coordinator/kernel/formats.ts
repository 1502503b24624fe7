/** What a format adds to the one before it. */
interface Format {
  /** The version of Leasehold that brought it. */
  release: string;
  /** What works only when it is in force, for operators to read. */
  features: readonly string[];
}

/**
 * The formats of messages, rows and tokens. A release that changes any of them appends one. Its code also
 * reads the one before, and writes that until the new one is in force (M9).
 */
export const FORMATS: readonly Format[] = [{ release: "0.2.0", features: [] }];

/** The newest format that this code speaks. */
export const FORMAT = FORMATS.length;

/** The oldest format that code speaks whose newest one is given. */
export const oldestFormat = (newest: number): number => Math.max(1, newest - 1);

/** What every message carries of its sender, and many answers carry of theirs (M9). */
export interface Stamp {
  /** The newest format that the sender's code speaks. */
  speaks: number;
  /** The format in force, as far as the sender knows. 0: it does not know. */
  format: number;
}
