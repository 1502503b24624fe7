import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { costTable } from "../cost/table.ts";
import { tableOf } from "./table.ts";
import type { WorkCounts } from "./work-counts.ts";

/** The published counts. A test compares them with the code. */
export const PAGE = join(import.meta.dirname, "../../docs/bench/counts.md");

export const writePage = (counted: readonly WorkCounts[]): void => writeFileSync(PAGE, pageOf(counted));

export const pageOf = (counted: readonly WorkCounts[]): string => `# Counts and costs

\`npm run counts -- --write\` generates this page.

${costTable(counted).join("\n")}
## Counts

Counts per call, for calls that share no message with others. They are the same on every machine, and include
the messages that the Worker sends. Names are placed on as many shards as possible. Where "shards touched" has
a fraction, a line is the exact mean over random names. Where decisions ride, names and moments are random,
and decisions share messages with later begins. Syncs are those of the standalone server; all other
figures were counted in workerd.

${tableOf(counted)}
`;
