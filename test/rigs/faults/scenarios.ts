/** The scenarios of the matrix. Each is one operation of the coordinator, with its preparation. */
import { evictDurableObject } from "cloudflare:test";
import { stubOf } from "./objects.ts";
import { armFault, type Fault } from "./armed-fault.ts";
import { nameOn, type Cell, type Stage } from "./stage.ts";

export interface Scenario {
  title: string;
  /** The rules that its rows prove. */
  rules: string;
  /** The preparation, which has no faults and is not recorded. */
  arrange: (stage: Stage) => Promise<void>;
  act: (stage: Stage) => Promise<void>;
  /** Whether begins.test.ts or others.test.ts runs it. The two files share the work. */
  isBegin?: boolean;
  /** The whole D1 database is compared with the objects. */
  comparesD1?: boolean;
  /** A fault does not stop the calls after it. */
  goesOn?: boolean;
}

/** Free names, one on each shard. The names of `TAKEN` are owned in some scenarios. */
const FREE = [nameOn(0, 1), nameOn(1, 1)];
const TAKEN = [nameOn(0), nameOn(1)];
const [onFirst, onSecond] = FREE as [string, string];
/** The number of a bucket type that a scenario declares. */
const HANDLES = 900;
const DAY_MS = 86_400_000;

/** Uses every object once. */
async function warm(stage: Stage, cells: Cell[] = [1]): Promise<void> {
  for (const cell of cells) await stage.addCell(cell);
  for (const shard of [0, 1]) await stage.touch(`shard${shard}`);
}

/** Makes each cell own a name, so that its ledger has raised its incarnation. */
async function warmOwner(stage: Stage, cells: Cell[] = [1]): Promise<void> {
  await warm(stage, cells);
  for (const cell of cells) await stage.own(`owned by ${cell}`, cell, [nameOn(0, 2 + cell)]);
}

/** Evicts an object, so that a new instance starts. */
async function restart(stage: Stage, label: string): Promise<void> {
  await evictDurableObject(stubOf(stage.deployment, label));
}

/** Makes one message of the preparation fail. */
async function withFault(
  stage: Stage,
  label: string,
  kind: "drop",
  work: () => Promise<unknown>,
): Promise<void> {
  const armed = armFault({ label }, { kind } satisfies Fault);
  stage.deployment.faults = [armed];
  await work();
  if (!armed.fired) throw new Error(`no message ${label} was sent`);
}

/** Prepares a decision that one shard has not received. */
async function halfDecided(
  stage: Stage,
  cell: Cell,
  outcome: "commit" | "rollback",
  batch: Parameters<Stage["begin"]>[2] = { create: FREE },
): Promise<void> {
  await stage.begin("half", cell, batch);
  await withFault(stage, `ledger${cell} > shard1 exchange ${outcome}`, "drop", () =>
    stage.decide("half", outcome),
  );
}

/** Prepares a cell with a name that is ready to be removed. */
async function drained(stage: Stage): Promise<void> {
  await warm(stage, [1, 2]);
  await stage.own("owned", 1, TAKEN.slice(0, 1));
  await stage.own("other", 2, TAKEN.slice(1));
  await stage.freeze(1, "drain");
  await stage.ring("ledger1");
  await stage.readDigest(1);
}

export const scenarios: readonly Scenario[] = [
  {
    title: "first use",
    isBegin: true,
    rules: "[P1]",
    arrange: async () => {},
    act: async (stage) => {
      await stage.addCell(1);
      await stage.begin("a", 1, { create: FREE });
    },
  },
  {
    title: "begin",
    isBegin: true,
    rules: "[B5] [B7]",
    arrange: async (stage) => {
      await warmOwner(stage);
      await restart(stage, "ledger1");
    },
    act: async (stage) => {
      await stage.begin("a", 1, { create: FREE });
    },
  },
  {
    title: "refused begin",
    isBegin: true,
    rules: "[B6]",
    arrange: async (stage) => {
      await warm(stage, [1, 2]);
      await stage.own("other", 2, [onSecond]);
    },
    act: async (stage) => {
      await stage.begin("a", 1, { create: FREE }, [{ status: 409, code: "ALREADY_EXISTS" }]);
    },
  },
  {
    title: "begin that meets an orphaned hold",
    isBegin: true,
    rules: "[B8]",
    arrange: async (stage) => {
      await warmOwner(stage, [1, 2]);
      await stage.orphan(2, [onFirst]);
    },
    act: async (stage) => {
      await stage.begin("a", 1, { create: FREE });
    },
  },
  {
    title: "begin that meets an unapplied decision",
    isBegin: true,
    rules: "[B8]",
    arrange: async (stage) => {
      await warm(stage, [1, 2]);
      await halfDecided(stage, 2, "commit");
    },
    act: async (stage) => {
      await stage.begin("a", 1, { create: [onSecond] }, [{ status: 409, code: "ALREADY_EXISTS" }]);
    },
  },
  {
    title: "commit",
    rules: "[C1] [C2] [C3]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.begin("a", 1, { create: FREE });
    },
    act: async (stage) => {
      await stage.decide("a", "commit");
      await stage.ring("ledger1");
    },
  },
  {
    title: "rollback",
    rules: "[C1] [C2] [C3]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.begin("a", 1, { create: FREE });
    },
    act: async (stage) => {
      await stage.decide("a", "rollback");
      await stage.ring("ledger1");
    },
  },
  {
    title: "fence",
    rules: "[C7]",
    arrange: async (stage) => warm(stage),
    act: async (stage) => {
      stage.lease("a", 1, { create: FREE });
      await stage.decide("a", "rollback");
      await stage.begin("a", 1, { create: FREE }, [{ status: 409, reason: "LEASE_ROLLED_BACK" }]);
    },
  },
  {
    title: "replace and destroy",
    isBegin: true,
    rules: "[C1] [E1]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.own("owned", 1, TAKEN);
    },
    act: async (stage) => {
      await stage.begin("a", 1, { replace: TAKEN.slice(0, 1), destroy: TAKEN.slice(1) });
      await stage.decide("a", "commit");
    },
  },
  {
    title: "freeze",
    rules: "[C6]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.begin("before", 1, { create: [onSecond] });
    },
    act: async (stage) => {
      await stage.freeze(1, "freeze");
      await stage.begin("a", 1, { create: [onFirst] }, [{ status: 409, reason: "CELL_FROZEN" }]);
      await stage.decide("before", "commit");
    },
  },
  {
    title: "removal",
    rules: "[X2] [X3] [X4] [X5]",
    arrange: (stage) => drained(stage),
    act: async (stage) => {
      await stage.approveRemoval(1);
      await stage.removeCell(1);
    },
  },
  {
    title: "key revocation",
    rules: "[A1]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.mintKey("good", 1);
      await stage.mintKey("bad", 1);
    },
    act: async (stage) => {
      await stage.revokeKey("bad");
      await stage.begin(
        "a",
        1,
        { create: FREE },
        [{ status: 401, reason: "KEY_REVOKED" }],
        stage.keys.get("bad")?.key,
      );
    },
  },
  {
    title: "lookup that inquires",
    rules: "[R2]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.begin("a", 1, { create: [onFirst] });
      await stage.orphan(1, [onSecond]);
    },
    act: async (stage) => {
      await stage.lookup(onFirst, [{ status: 200 }]);
      await stage.lookup(onSecond, [{ status: 404 }]);
    },
  },
  {
    title: "lookup before a delivery",
    rules: "[C3] [R2]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.own("mine", 1, FREE);
      await halfDecided(stage, 1, "commit", { destroy: FREE });
    },
    act: async (stage) => {
      await stage.lookup(onSecond, [{ status: 404 }]);
      await stage.lookup(onFirst, [{ status: 404 }]);
    },
  },
  {
    title: "sweep",
    rules: "[B8] [M3]",
    arrange: async (stage) => {
      await warm(stage);
      await halfDecided(stage, 1, "rollback");
      await stage.orphan(1, [onFirst]);
    },
    act: async (stage) => {
      await stage.ring("shard0");
      await stage.ring("shard1");
    },
  },
  {
    title: "alarm that repeats a delivery",
    rules: "[C3] [M3]",
    arrange: async (stage) => {
      await warm(stage);
      await halfDecided(stage, 1, "commit");
    },
    act: async (stage) => {
      await stage.ring("ledger1");
    },
  },
  {
    title: "cron",
    rules: "[S1]",
    comparesD1: true,
    goesOn: true,
    arrange: async (stage) => {
      // Decisions made now are old enough to be pruned later.
      stage.deployment.skewMs = -2 * DAY_MS;
      await warmOwner(stage, [1, 2]);
      await stage.cron();
      stage.deployment.skewMs = 0;
      await restart(stage, "ledger1");
      await stage.begin("a", 1, { create: FREE });
      await stage.mintKey("good", 1);
    },
    act: async (stage) => {
      await stage.cron();
    },
  },
  {
    title: "directory",
    rules: "[P1]",
    comparesD1: true,
    arrange: async (stage) => {
      await stage.addCell(1);
    },
    act: async (stage) => {
      await stage.addCell(2);
      await stage.renameCell(2, "Another name");
      await stage.mintKey("bad", 2);
      await stage.revokeKey("bad");
    },
  },
  {
    title: "declared type",
    rules: "[T2] [T3]",
    comparesD1: true,
    arrange: async (stage) => {
      await warmOwner(stage);
    },
    act: async (stage) => {
      await stage.declareType("HANDLES", HANDLES);
      await stage.begin("a", 1, {
        type: "HANDLES",
        create: [nameOn(0, 9, HANDLES), nameOn(1, 9, HANDLES)],
      });
    },
  },
  {
    title: "identities",
    rules: "[A4]",
    arrange: async (stage) => {
      await stage.addCell(1);
    },
    act: async (stage) => {
      await stage.acceptTokens("forge");
    },
  },
  {
    title: "restore",
    rules: "[A5] [A6]",
    arrange: async (stage) => {
      await stage.addCell(1);
    },
    act: async (stage) => {
      await stage.startRestore();
      await stage.endRestore();
    },
  },
  {
    title: "verification slot",
    rules: "[A3]",
    arrange: async (stage) => {
      await stage.addCell(1);
    },
    act: async (stage) => {
      await stage.takeSlot(1);
      await stage.releaseSlot(1);
    },
  },
  {
    title: "erased history",
    rules: "[K5]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.own("owned", 1, TAKEN);
      await stage.begin("replaced", 1, { replace: TAKEN });
      await stage.decide("replaced", "commit");
    },
    act: async (stage) => {
      await stage.eraseHistory(nameOn(0));
    },
  },
  {
    title: "scrub",
    rules: "[Z4]",
    arrange: async (stage) => {
      await warm(stage);
      await stage.own("owned", 1, TAKEN);
      await stage.begin("open", 1, { create: FREE });
      for (const shard of [0, 1]) await stage.ring(`shard${shard}`);
    },
    act: async (stage) => {
      await stage.scrub(`ledger-${stage.deployment.cell(1)}`);
    },
  },
  {
    title: "renewal",
    rules: "[C8]",
    arrange: async (stage) => {
      await stage.addCell(1);
      await stage.begin("held", 1, { create: FREE });
    },
    act: async (stage) => {
      await stage.renew("held");
    },
  },
  {
    title: "status report",
    rules: "[U2]",
    arrange: async (stage) => {
      await stage.addCell(1);
    },
    act: async (stage) => {
      await stage.reportStatus(1);
    },
  },
];
