import type { Capability, LedgerHalf } from "../../kernel/capability.ts";
import { durable } from "../../kernel/durable.ts";
import type { CellCall } from "../../kernel/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import { Contradictions } from "./contradictions.ts";
import { StatusReports } from "./ledger.ts";
import type { ReportStatus } from "./messages.ts";
import type { ReportedStatus } from "./status.ts";

const methods = {
  reportStatus: method<ReportStatus, ReportedStatus>("call"),
  reportedStatus: method<CellCall, ReportedStatus | null>("call"),
};

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof methods> {}
}

const writes = ["report_status"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

const ledger: LedgerHalf<typeof methods> = {
  writes,
  methods,
  make: ({ ports, limits, standing }) => {
    const contradictions = new Contradictions(ports);
    const reports = new StatusReports(ports, limits, contradictions, standing);
    const reported = () => ({ reported: reports.last });
    return {
      handlers: {
        reportStatus: (message) => reports.store(message),
        reportedStatus: () => durable({ ports }, ok(reports.last)),
      },
      hooks: {
        status: reported,
        maintained: () => ({ ...reported(), contradictions: contradictions.seen }),
        metrics: reported,
        decisionAnswered: (request, result) => contradictions.decided(request, result),
        cellEnded: () => reports.forget(),
      },
    };
  },
};

/** Cells say how they are, and ledgers count the contradictions with them. */
export const status = { name: "status", ledger } as const satisfies Capability;
