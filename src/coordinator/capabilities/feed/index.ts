import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import type { ChangesPage, ChangesRequest } from "./messages.ts";
import { ChangeNotes } from "./logged-changes.ts";
import { listChanges } from "./shard.ts";

const methods = { listChanges: method<ChangesRequest, ChangesPage>("read") };

declare module "../../kernel/methods.ts" {
  interface ShardCalls extends Calls<typeof methods> {}
}

const shard: ShardHalf<typeof methods> = {
  methods,
  make: (part) => {
    let changeReads = 0;
    const notes = new ChangeNotes();
    part.log.notes.provide(notes);
    return {
      parts: { notes },
      handlers: { listChanges: (request) => listChanges(part, request) },
      measures: { listChanges: counting(() => (changeReads += 1)) },
      hooks: { metrics: () => ({ changeReads }) },
    };
  },
};

/** Tells what happened on a shard (F1 to F4). */
export const feed = { name: "feed", shard } as const satisfies Capability;
