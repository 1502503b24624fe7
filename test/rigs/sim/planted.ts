/**
 * For each file that a planted bug changes, what chooses between the file as it is and its variants.
 * `bundle.ts` adds these to the simulator.
 */
export const plantings: ((bug: string | undefined) => void)[] = [];
