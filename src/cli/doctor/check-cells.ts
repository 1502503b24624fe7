import { isLeaseholdError, type Cell } from "../../client/index.ts";
import { originOf } from "../../router/lookups/origin.ts";
import { messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { take } from "../output/result.ts";
import { commandLine } from "../../text/shell-word.ts";
import { fail, ok, warn, type Check } from "./check.ts";

const MAX_CELLS = 1_000;

/** The addresses that are probed, and how many at a time. */
const PROBED = 100;
const AT_ONCE = 8;
const PROBE_MS = 5_000;

/** Whether cells are reachable, for the coordinator and for routers. */
export async function checkCells(context: Context, isProbed: boolean): Promise<Check[]> {
  let cells: readonly Cell[];
  try {
    cells = (await take((await context.client()).cells.list(), MAX_CELLS)).items;
  } catch (error) {
    if (!isLeaseholdError(error)) throw error;
    return [fail("cells", `they can't be listed: ${messageOf(error)}`, "leasehold cells ls")];
  }
  return [
    checkStates(cells),
    checkAddresses(cells),
    ...(isProbed ? [await probeAll(context, cells.slice(0, PROBED))] : []),
  ];
}

function checkStates(cells: readonly Cell[]): Check {
  const lost = cells.filter(({ state }) => state === null).map(({ cell_id: id }) => id);
  const frozen = cells.filter(({ state }) => state === "FROZEN").map(({ cell_id: id }) => id);
  const draining = cells.filter(({ state }) => state === "DRAINING").map(({ cell_id: id }) => id);
  const facts = {
    cells: cells.length,
    unreachable: lost.length,
    frozen: frozen.length,
    draining: draining.length,
  };
  if (lost.length > 0)
    return fail(
      "cells",
      `the ledgers of cells ${lost.join(", ")} can't be reached`,
      "leasehold status",
      facts,
    );
  if (frozen.length > 0)
    return warn("cells", `cells ${frozen.join(", ")} are frozen`, `leasehold cells show ${frozen[0]}`, facts);
  if (draining.length > 0)
    return warn(
      "cells",
      `cells ${draining.join(", ")} are draining`,
      `leasehold cells show ${draining[0]}`,
      facts,
    );
  return ok("cells", `${cells.length} cells are active`, facts);
}

function checkAddresses(cells: readonly Cell[]): Check {
  const wrong = cells.filter(({ address }) => originOf(address) === undefined).map(({ cell_id: id }) => id);
  const facts = { wrong: wrong.length };
  return wrong.length === 0
    ? ok("addresses", "routers can use all of them", facts)
    : fail(
        "addresses",
        `the addresses of cells ${wrong.join(", ")} are not bare https origins, so routers refuse them`,
        `${commandLine("cells", "set", wrong[0])} --address URL --reason TEXT`,
        facts,
      );
}

/** Any answer counts, because a cell need not serve `/`. The key is not sent. */
async function probeAll({ io }: Context, cells: readonly Cell[]): Promise<Check> {
  const silent: string[] = [];
  const left = cells.filter(({ address }) => URL.canParse(address));
  const worker = async (): Promise<void> => {
    for (let cell = left.shift(); cell !== undefined; cell = left.shift()) {
      const signal = AbortSignal.any([io.signal, AbortSignal.timeout(PROBE_MS)]);
      const init = { method: "HEAD", headers: {}, signal, redirect: "manual" } as const;
      await io.fetch(cell.address, init).catch(() => silent.push(cell?.cell_id ?? ""));
    }
  };
  const probed = left.length;
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  io.signal.throwIfAborted();
  const facts = { probed, silent: silent.length };
  return silent.length === 0
    ? ok("cells' answers", `${probed} addresses answer from here`, facts)
    : warn(
        "cells' answers",
        `the addresses of cells ${silent.join(", ")} don't answer from here`,
        commandLine("cells", "show", silent[0]),
        facts,
      );
}
