import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import type { Report, ReportRequest } from "./messages.ts";
import { readReport } from "./shard.ts";

const methods = { report: method<ReportRequest, Report>("read") };

declare module "../../kernel/methods.ts" {
  interface ShardCalls extends Calls<typeof methods> {}
}

const shard: ShardHalf<typeof methods> = {
  methods,
  make: ({ log }) => {
    let reports = 0;
    return {
      handlers: { report: ({ after }) => readReport(log, after) },
      measures: { report: counting(() => (reports += 1)) },
      hooks: { metrics: () => ({ reports }) },
    };
  },
};

/** Tells routers which keys were put on hold (Q3). */
export const reports = { name: "reports", shard } as const satisfies Capability;
