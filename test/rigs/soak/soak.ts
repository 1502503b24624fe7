import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { patience } from "../../../demo/patience.ts";
import { Random } from "../../../demo/random.ts";
import { reconcile, ReconcileAborted, type Finding } from "../../../src/users/cell/reconcile.ts";
import type { RemoteLeases } from "../../../src/users/cell/remote-leases.ts";
import { ClientLeases, type LeaseState } from "../../../src/users/cell/remote-leases.ts";
import { unknown, type Answer } from "../../../src/users/client/answer.ts";
import { createClient } from "../../../src/users/client/index.ts";
import { cellIds, Clients } from "../crash/clients.ts";
import { LocalDatabase } from "../crash/local-database.ts";
import { nowMs, readRecords, Recorder } from "../crash/record.ts";
import { Server, killTargets, type HostKind } from "../crash/server.ts";
import { readStores, sizeOf } from "../crash/state-files.ts";
import { bucketKey, Verifier } from "../crash/verify.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { addCall, newMinute, residentMb, type Minute } from "./samples.ts";

export interface SoakOptions {
  host: HostKind;
  minutes: number;
  seed: number;
  folder: string;
  log: (line: string) => void;
}

const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

const MB = 1_048_576;
const SAMPLE_MS = 5_000;
const RECONCILE_MS = 10_000;
/**
 * Shorter than the stale time of the reconciliation, so that it does not treat a client that still retries as
 * dead.
 */
const DEADLINE_MS = 10_000;
const recovery = { commitGraceMs: 15_000, staleMs: 45_000, orphanMs: 30_000, full: true };

export class Soak {
  readonly minutes: Minute[] = [];
  readonly complaints: string[] = [];
  readonly options: SoakOptions;
  readonly totals = {
    kills: 0,
    restarts: 0,
    clientKills: 0,
    cycles: 0,
    calls: 0,
    unknown: 0,
    replays: 0,
    reconciled: 0,
  };
  /** The minute from which the coordinator was not disturbed. */
  undisturbedFromMinute = 0;
  /** The retention of outcomes, the least that is allowed. After that time the files should not grow. */
  readonly retentionS = 600;
  readonly #random: Random;
  readonly #startedAtMs = nowMs();
  readonly #initial = new Map<string, string>();
  #port = 0;
  #server: Server | undefined;
  #clients: Clients | undefined;
  #isOver = false;
  /** The number of reconciliations started. None starts while everything is checked. */
  #reconciliations = 0;
  readonly #reconciling = new Set<Promise<void>>();
  #isChecking = false;

  constructor(options: SoakOptions) {
    this.options = options;
    this.#random = new Random(options.seed, "soak");
  }

  async run(): Promise<void> {
    this.#port = await freePort();
    mkdirSync(join(this.options.folder, "cells"));
    await this.#start();
    const sampling = this.#sample();
    const recovering = cellIds.map((cell) => this.#recover(cell));
    while (this.#ageMs < this.options.minutes * 60_000) await this.#cycle();
    this.#isOver = true;
    await Promise.all([sampling, ...recovering]);
    await this.#end();
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#clients?.end("SIGUSR2");
    if (this.#server?.isRunning === true) await this.#server.kill("group");
  }

  get #ageMs(): number {
    return nowMs() - this.#startedAtMs;
  }

  get #isUndisturbed(): boolean {
    return this.#ageMs > this.options.minutes * 30_000;
  }

  #minute(atMs: number): Minute {
    const minute = Math.max(0, Math.floor((atMs - this.#startedAtMs) / 60_000));
    for (let next = this.minutes.length; next <= minute; next += 1) this.minutes.push(newMinute(next));
    return this.minutes[minute] ?? newMinute(minute);
  }

  get #now(): Minute {
    return this.#minute(nowMs());
  }

  async #start(): Promise<Server> {
    const retention = String(this.retentionS);
    const variables = { LEASEHOLD_OUTCOME_RETENTION_S: retention };
    this.#server = new Server({
      host: this.options.host,
      kind: "production",
      port: this.#port,
      folder: this.options.folder,
      variables,
    });
    if (!(await this.#server.ready()))
      throw new Error(`the server did not start: ${this.#server.output.slice(-500)}`);
    return this.#server;
  }

  /**
   * Runs load for half of the retention, so that no outcome is pruned before it is checked. Then everything
   * is checked.
   */
  async #cycle(): Promise<void> {
    const { folder, seed, minutes } = this.options;
    const server = this.#server ?? (await this.#start());
    const clients = new Clients({
      url: server.url,
      folder,
      keys: server.keys,
      seed: seed * 1_000 + this.totals.cycles,
      concurrency: 2,
      names: 60,
      deadlineMs: DEADLINE_MS,
    });
    this.#clients = clients;
    clients.start();
    const endMs = Math.min(this.#ageMs + (this.retentionS * 1_000) / 2, minutes * 60_000);
    while (this.#ageMs < endMs) {
      await sleep(Math.min(this.#random.between(2_000, 15_000), Math.max(0, endMs - this.#ageMs)));
      if (this.#isUndisturbed) {
        if (this.undisturbedFromMinute === 0) this.undisturbedFromMinute = this.#ageMs / 60_000;
      } else if (this.#ageMs < endMs) await this.#disturb(clients);
    }
    for (const problem of await clients.end("SIGTERM")) this.#complain(problem);
    this.#isChecking = true;
    await Promise.all(this.#reconciling);
    await this.#verify();
    this.#isChecking = false;
    this.totals.cycles += 1;
  }

  async #disturb(clients: Clients): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    if (this.#random.chance(0.3)) {
      clients.killOne(this.#random);
      this.#now.clientKills += 1;
      this.totals.clientKills += 1;
      return;
    }
    if (this.#random.chance(0.3)) {
      const code = await server.stop();
      if (code !== 0) this.#complain(`the server ended with ${code}`);
      this.#now.restarts += 1;
      this.totals.restarts += 1;
    } else {
      // The standalone server is one process.
      const targets = this.options.host === "standalone" ? (["group"] as const) : killTargets;
      const [target = "group"] = this.#random.shuffled(targets);
      await server.kill(target);
      this.#now.kills += 1;
      this.totals.kills += 1;
      if (target === "workerd" && (await server.isBack())) return;
      if (server.isRunning) {
        this.#complain("a server whose runtime was killed did not recover");
        await server.kill("group");
      }
    }
    await this.#start();
  }

  async #sample(): Promise<void> {
    while (!this.#isOver) {
      const minute = this.#now;
      const [node, workerd] = [residentMb(this.#server?.pid), residentMb(this.#server?.workerd)];
      if (node !== undefined) minute.nodeMb.push(node);
      if (workerd !== undefined) minute.workerdMb.push(workerd);
      const state = join(this.options.folder, "state");
      minute.databaseMb.push(sizeOf(state, ".sqlite") / MB);
      minute.walMb.push(sizeOf(state, "-wal") / MB);
      await sleep(SAMPLE_MS);
    }
  }

  /** Reconciles a cell at intervals, beside its clients. */
  async #recover(cell: string): Promise<void> {
    while (!this.#isOver) {
      await sleep(RECONCILE_MS);
      if (this.#isChecking) continue;
      const run = this.#reconcile(cell);
      this.#reconciling.add(run);
      await run;
      this.#reconciling.delete(run);
    }
  }

  async #reconcile(cell: string): Promise<void> {
    const database = this.#database(cell);
    const report = (finding: Finding): void => {
      if (finding.kind === "contradicted") this.#complain(`cell ${cell}: ${JSON.stringify(finding)}`);
    };
    const remote = this.#remote(cell);
    const { counters } = await reconcile({ local: database, remote, report }, recovery).catch(
      (error: unknown) => {
        // The list could not be read because the coordinator is down. The next run continues.
        if (error instanceof ReconcileAborted) return error.result;
        throw error;
      },
    );
    this.totals.reconciled += counters.committed + counters.rolledBack + counters.orphaned;
    remote.close();
    database.close();
  }

  #database(cell: string): LocalDatabase {
    return new LocalDatabase(join(this.options.folder, "cells", `cell-${cell}.sqlite`));
  }

  /**
   * Records the decisions of the reconciliation like those of the clients, because the verifier uses them.
   */
  #remote(cell: string): RemoteLeases & { close: () => void } {
    const server = this.#server;
    const leases = new ClientLeases(
      createClient({ ...patience, url: server?.url ?? "", key: server?.keys.cells[cell] ?? "", cell }),
    );
    const folder = join(this.options.folder, "records");
    mkdirSync(folder, { recursive: true });
    const recorder = new Recorder(folder, `reconciliation-${cell}-${(this.#reconciliations += 1)}`);
    const decide = async (kind: "commit" | "rollback", lease: string): Promise<Answer<LeaseState>> => {
      let answer: Answer<LeaseState> = unknown("not asked");
      await recorder.call({ cell, kind, lease }, async () => {
        answer = await leases[kind](lease);
        return { tries: 1, answer: { kind: answer.kind } };
      });
      return answer;
    };
    return {
      list: (page) => leases.list(page),
      get: (lease) => leases.get(lease),
      commit: (lease) => decide("commit", lease),
      rollback: (lease) => decide("rollback", lease),
      close: () => recorder.close(),
    };
  }

  #complain(text: string): void {
    this.complaints.push(text);
    this.#now.complaints += 1;
    this.options.log(`  ${text}`);
  }

  async #verify(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const { folder, log } = this.options;
    const records = readRecords(join(folder, "records"));
    for (const call of records.calls) addCall(this.#minute(call.calledAtMs), call);
    const cells = cellIds.map((cell) => ({ cell, database: this.#database(cell) }));
    const verifier = new Verifier(
      { url: server.url, keys: server.keys, fetch: (url, init) => fetch(url, init) },
      cells,
      records,
      this.#initial,
    );
    const startedMs = nowMs();
    const found = await verifier.all();
    for (const complaint of found) this.#complain(complaint);
    this.#initial.clear();
    for (const { cell, database } of cells) {
      for (const row of database.rows()) this.#initial.set(bucketKey(row), cell);
      database.close();
    }
    const unanswered = records.calls.filter(({ answer }) => answer.kind === "unknown").length;
    this.totals.calls += records.calls.length;
    this.totals.unknown += unanswered;
    this.totals.replays += verifier.replays + records.calls.reduce((sum, { tries }) => sum + tries - 1, 0);
    log(
      `minute ${Math.round(this.#ageMs / 6_000) / 10}: cycle ` +
        `${this.totals.cycles + 1}, ${records.calls.length} calls, ${unanswered} unknown, ` +
        `checked in ${Math.round((nowMs() - startedMs) / 100) / 10} ` +
        `s: ${this.complaints.length} complaints so far`,
    );
    if (found.length > 0)
      renameSync(join(folder, "records"), join(folder, `records-${this.totals.cycles + 1}`));
    for (const name of ["records", "history"]) rmSync(join(folder, name), { recursive: true, force: true });
  }

  /** Checks that nothing is left on disk after the coordinator had time to clean up. */
  async #end(): Promise<void> {
    await sleep(8_000);
    const server = this.#server;
    const code = await server?.stop();
    if (code !== 0) this.#complain(`the server ended with ${code}`);
    const { leftovers } = readStores(join(this.options.folder, "state"));
    for (const leftover of leftovers) this.#complain(leftover);
  }
}
