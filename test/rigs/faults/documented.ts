/** The writes of each scenario in the documentation, sorted. */
import documentation from "../../../docs/internals/fault-matrix.md?raw";

const namesIn = (writes: string): string[] =>
  [...writes.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? "").toSorted();

export const documented: ReadonlyMap<string, readonly string[]> = new Map(
  [...documentation.matchAll(/^- \*\*([^*]+)\*\*:((?:\s+`[^`]+`)+)$/gm)].map(
    ([, title = "", writes = ""]) => [title, namesIn(writes)],
  ),
);
