/** Tests that `npm start` restarts its runtime when the machine's clock is set back. */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { isInPath } from "../../support/setup/programs.ts";
import { Server } from "./server.ts";

/** Compiles the library that gives a process another clock. Returns the variables that load it. */
function movableClock(folder: string): {
  variables: Record<string, string>;
  set: (offsetMs: number) => void;
} {
  const [library, file] = [join(folder, "clock-offset.so"), join(folder, "offset")];
  const source = join(import.meta.dirname, "clock-offset.c");
  const { status, stderr } = spawnSync("gcc", ["-shared", "-fPIC", "-o", library, source], {
    encoding: "utf8",
  });
  expect(status, stderr).toBe(0);
  writeFileSync(file, Buffer.alloc(8));
  return {
    variables: { LD_PRELOAD: library, CLOCK_OFFSET_FILE: file },
    set: (offsetMs) => {
      const offset = Buffer.alloc(8);
      offset.writeBigInt64LE(BigInt(offsetMs));
      const opened = openSync(file, "r+");
      writeSync(opened, offset, 0, offset.length, 0);
      closeSync(opened);
    },
  };
}

const CLIENTS = 60;

/** Begins that compete for the same names, so that some of them pause before their next attempt (B9). */
async function compete(server: Server, isOver: () => boolean): Promise<Set<number>> {
  const statuses = new Set<number>();
  const client = async (index: number): Promise<void> => {
    const cell = String(1 + (index % 4));
    const key = server.keys.cells[cell] ?? "";
    do {
      const creates = Array.from({ length: 12 }, (_, n) => ({
        bucket: { type: "ROUTES", value: `contested-${n}` },
        subject: { type: "USER", id: 1 },
        source: { type: "RAILS_TABLE_USERS", id: 1 },
      }))
        .toSorted(() => Math.random() - 0.5)
        .slice(0, 6);
      const path = `/v1/cells/${cell}/leases/${randomUUID()}`;
      const { status } = await server.call(key, "PUT", path, { creates });
      statuses.add(status);
      if (status !== 409) await server.call(key, "POST", `${path}/rollback`);
    } while (!isOver());
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
  return statuses;
}

test.skipIf(process.platform !== "linux" || !isInPath("gcc"))(
  "[M4] after the clock was set back by an hour, begins that compete for names are answered",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "leasehold-clock-"));
    const clock = movableClock(folder);
    const server = new Server(await freePort(), join(folder, "state"), {
      ...clock.variables,
      LEASEHOLD_SHARDS: "4",
    });
    onTestFinished(async () => {
      await server.end("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    });
    await server.ready();
    let isRestarted = false;
    const competing = compete(server, () => isRestarted);
    clock.set(-3_600_000);
    await expect.poll(() => server.stderr).toContain('{"event":"runtime_restarted"}');
    isRestarted = true;
    expect(server.stderr).toMatch(/^\{"event":"clock_went_back","by_ms":3\d{6}\}$/m);
    await competing;
    // The new runtime has no timer that waits for a time that has passed before.
    await server.ready();
    let rounds = 0;
    const statuses = await compete(server, () => (rounds += 1) > 5 * CLIENTS);
    expect(statuses.difference(new Set([201, 409]))).toEqual(new Set());
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  },
);
