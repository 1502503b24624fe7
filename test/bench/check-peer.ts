import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { closedLoop } from "../../bench/client/closed-loop.ts";
import { CONTESTED, Cycles, Lookups } from "../../bench/client/cycles.ts";
import { Names } from "../../bench/client/names.ts";
import { Peer } from "../../bench/peers.ts";

/** A folder that is removed after the test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-bench-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Starts a peer, and checks that it grants, refuses, commits and finds. */
export async function checkPeer(program: Exclude<Peer["program"], "ceilings">): Promise<void> {
  const peer = await Peer.start(program, newFolder());
  onTestFinished(() => peer.stop());
  const cycles = new Cycles(peer.serving(program), 2, 2, new Names("t"), false);
  const lookups = new Lookups(peer.serving(program), 1, false);
  const [first, second] = [cycles.freshNames(), cycles.freshNames()];
  expect(await cycles.cycle("1", first)).toBe(200);
  // A begin is all or nothing: one name is taken, so the other one must stay free.
  expect(await cycles.begin("2", [second[0] ?? "", first[0] ?? ""])).toBe(409);
  expect(await lookups.lookup(first[1] ?? "")).toBe(200);
  expect(await lookups.lookup(second[0] ?? "")).toBe(404);
  expect(await cycles.cycle("2", second)).toBe(200);
  // Every hundredth turn begins one of these names, so they must be taken.
  expect(await cycles.cycle("1", CONTESTED)).toBe(200);
  const before = peer.cpuSeconds();
  const loaded = await closedLoop({ clients: 2, seconds: 0.3, turn: (client) => cycles.turn(client) });
  expect(loaded).toMatchObject({ errors: 0 });
  expect(loaded.turns).toBeGreaterThan(0);
  expect(peer.cpuSeconds()).toBeGreaterThanOrEqual(before);
  cycles.close();
  lookups.close();
}
