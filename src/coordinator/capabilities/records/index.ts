import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import { OPERATORS } from "../../kernel/shard/read-queue.ts";
import { ChangeCounts } from "./change-counts.ts";
import { DigestReader } from "./digest-records.ts";
import type {
  DigestRecordsAnswer,
  DigestRecordsRequest,
  FindNames,
  FoundNames,
  ListRecordsAnswer,
  ListRecordsRequest,
} from "./messages.ts";
import { ScanStore } from "./scan-store.ts";
import { RecordReader } from "./shard.ts";

const methods = {
  listRecords: method<ListRecordsRequest, ListRecordsAnswer>("whole"),
  digestRecords: method<DigestRecordsRequest, DigestRecordsAnswer>("whole"),
  findNames: method<FindNames, FoundNames>("whole"),
};

declare module "../../kernel/methods.ts" {
  interface ShardCalls extends Calls<typeof methods> {}
}

const shard: ShardHalf<typeof methods> = {
  methods,
  make: (part) => {
    const changes = new ChangeCounts(part.ports.randomness);
    const scans = new ScanStore(part.ports.sql, part.log.held);
    const lists = new RecordReader({ ...part, scans });
    const digests = new DigestReader({ ...part, scans, changes });
    const count = counting(() => {
      part.counters.add("recordReads");
    });
    return {
      parts: { changes, scans, lists, digests },
      handlers: {
        listRecords: (request) =>
          part.wide.current.readClaims(request.cell, request, () => lists.listRecords(request)),
        digestRecords: (request) =>
          part.wide.current.readClaims(request.cell, request, () => digests.digestRecords(request)),
        /** Searches the claims of all cells for the names of a subject. */
        findNames: (request) =>
          part.reads.run(OPERATORS, () => {
            const rows = part.limits.scanRows;
            return { value: scans.findNames(request, rows), rows };
          }),
      },
      measures: { listRecords: count, digestRecords: count, findNames: count },
      hooks: {
        touched: (cell) => {
          if (cell === null) changes.reset();
          else changes.add(cell);
        },
      },
    };
  },
};

/** Lists, digests and searches of claims (R3, R4). */
export const records = { name: "records", shard } as const satisfies Capability;
