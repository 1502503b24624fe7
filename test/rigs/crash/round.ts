import { cpSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { patience } from "../../../demo/patience.ts";
import { Random } from "../../../demo/random.ts";
import { ClientLeases } from "../../../src/users/cell/remote-leases.ts";
import { createClient, type Fetch } from "../../../src/users/client/index.ts";
import { checkHistory } from "../../../src/users/conformance/history/check-history.ts";
import { readHistory, Recorder as History } from "../../../src/users/conformance/history/history.ts";
import { shipped } from "../../support/types.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { cellIds, Clients } from "./clients.ts";
import { armVariables, CRON_PATH, UNNAMED, type Failpoint, type Side } from "./failpoints.ts";
import { LocalDatabase } from "./local-database.ts";
import { nowMs, readRecords, type Records } from "./record.ts";
import { Server, type HostKind, type KillTarget, type ServerOptions } from "./server.ts";
import { ageOutcomes, judgeRecord, readStores } from "./state-files.ts";
import { Verifier } from "./verify.ts";
import { recordingFetch } from "./recording-fetch.ts";

export interface RoundSettings {
  host: HostKind;
  number: number;
  seed: number;
  death:
    | { kind: "failpoint"; failpoint: Failpoint; side: Side; hit: number }
    | { kind: "random"; killTargets: readonly KillTarget[] };
  /** The clients keep running when the server dies. Otherwise they are killed with it. */
  clientsSurvive: boolean;
  killsClient: boolean;
  /** Waits for the alarms of the ledgers, instead of making them write. */
  isPatient: boolean;
}

export interface RoundResult {
  settings: RoundSettings;
  kills: number;
  clientKills: number;
  begins: number;
  commits: number;
  rollbacks: number;
  unknown: number;
  replays: number;
  /** The number of calls for which the linearizability checker found an order. */
  ordered: number;
  /** Empty if the round passed. */
  complaints: string[];
}

/** Short times, so that recovery ends within a round. */
export const quickLimits = {
  LEASEHOLD_SWEEP_AFTER_MS: "300",
  LEASEHOLD_MAX_BACKOFF_MS: "1000",
  LEASEHOLD_PULL_ROWS: "20",
};

/** About two hundred calls, in bytes of the clients' records. */
const FLOW_BYTES = 120_000;
/** What has not happened after this time never happens, however slow the machine is. */
const PATIENCE_MS = 300_000;
/** The least that is allowed. */
const PRUNE_AFTER_S = 600;
/** Longer than a ledger's alarm usually takes to save its applied position. */
const ALARM_MS = 6_500;

const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

/** Makes a state folder that is set up and unused, to copy for each round. */
export async function makeTemplate(folder: string, host: HostKind): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const server = new Server({ host, kind: "production", port, folder, variables: quickLimits });
  if (!(await server.ready())) throw new Error(`the server does not start: ${server.output}`);
  await server.stop();
}

export async function runRound(
  settings: RoundSettings,
  folder: string,
  template: string,
): Promise<RoundResult> {
  const round = new Round(settings, folder, await freePort());
  try {
    return await round.run(template);
  } finally {
    await round.close();
  }
}

class Round {
  readonly #settings: RoundSettings;
  readonly #folder: string;
  readonly #port: number;
  readonly #random: Random;
  readonly #complaints: string[] = [];
  readonly #harness = createServer();
  #onFailpoint: () => void = () => {};
  #server: Server | undefined;
  #clients: Clients | undefined;
  #kills = 0;

  constructor(settings: RoundSettings, folder: string, port: number) {
    this.#settings = settings;
    this.#folder = folder;
    this.#port = port;
    this.#random = new Random(settings.seed, "round", settings.number);
  }

  async run(template: string): Promise<RoundResult> {
    const { death } = this.#settings;
    mkdirSync(this.#folder, { recursive: true });
    if (!this.#isSetUp) cpSync(join(template, "state"), join(this.#folder, "state"), { recursive: true });
    await new Promise<void>((listening) => this.#harness.listen(0, "127.0.0.1", listening));
    this.#harness.on("request", (_request, response) => {
      this.#onFailpoint();
      response.end();
    });
    if (this.#workload === "prune") await this.#age();
    if (death.kind === "failpoint") await this.#dieAtFailpoint();
    else await this.#dieAtRandom(death.killTargets);
    const records = readRecords(join(this.#folder, "records"));
    const replays = await this.#verify(records);
    const ordered = this.#workload === "prune" ? 0 : this.#checkHistory();
    const count = (kind: string, answer: string): number => countOf(records, kind, answer);
    if (!this.#isSetUp && !isLoaded(records))
      this.#complaints.push("no begin or no commit was acknowledged, so there was nothing to verify");
    return {
      settings: this.#settings,
      kills: this.#kills,
      clientKills: this.#clients?.kills ?? 0,
      begins: count("begin", "ok"),
      commits: count("commit", "ok"),
      rollbacks: count("rollback", "ok"),
      unknown: count("begin", "unknown") + count("commit", "unknown") + count("rollback", "unknown"),
      replays: replays + records.calls.reduce((sum, { tries }) => sum + Math.max(0, tries - 1), 0),
      ordered,
      complaints: this.#complaints,
    };
  }

  async close(): Promise<void> {
    this.#harness.close();
    await this.#clients?.end("SIGUSR2");
    if (this.#server?.isRunning === true) await this.#server.kill("group");
  }

  get #workload(): Failpoint["workload"] | undefined {
    return this.#settings.death.kind === "failpoint" ? this.#settings.death.failpoint.workload : undefined;
  }

  get #isSetUp(): boolean {
    return this.#workload === "set_up";
  }

  /** The production server gets the failpoint variables too, and must ignore them. */
  async #start(kind: ServerOptions["kind"], variables: Record<string, string> = {}): Promise<Server> {
    this.#server = new Server({
      host: this.#settings.host,
      kind,
      port: this.#port,
      folder: this.#folder,
      variables: { ...quickLimits, ...variables },
    });
    if (!(await this.#server.ready()) && kind === "production")
      throw new Error(`the server did not start again: ${this.#server.output.slice(-500)}`);
    return this.#server;
  }

  #startClients(server: Server): Clients {
    // Clients of an earlier part are reused, with other random choices.
    const seed = this.#settings.seed * 1_000 + this.#settings.number;
    const clients =
      this.#clients ?? new Clients({ url: server.url, folder: this.#folder, keys: server.keys, seed });
    clients.start();
    return clients;
  }

  #arming(): Record<string, string> {
    const { death } = this.#settings;
    const address = this.#harness.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    if (death.kind !== "failpoint") return {};
    return {
      [armVariables.point]: death.failpoint.name,
      [armVariables.side]: death.side,
      [armVariables.hit]: String(death.hit),
      [armVariables.reportUrl]: `http://127.0.0.1:${port}/`,
    };
  }

  /** Leaves outcomes that are old enough to be pruned, and nothing else. */
  async #age(): Promise<void> {
    const server = await this.#start("production");
    this.#clients = this.#startClients(server);
    await this.#clients.waitForRecords(2 * FLOW_BYTES);
    this.#complaints.push(...(await this.#clients.end("SIGTERM")));
    await server.stop();
    ageOutcomes(join(this.#folder, "state"), 2 * PRUNE_AFTER_S * 1_000);
  }

  async #dieAtFailpoint(): Promise<void> {
    const reached = new Promise<void>((resolve) => (this.#onFailpoint = resolve));
    const retention =
      this.#workload === "prune" ? { LEASEHOLD_OUTCOME_RETENTION_S: String(PRUNE_AFTER_S) } : {};
    // This process kills the server, even if it is not ready yet. A standalone server kills itself.
    const killed = reached.then(async () => {
      await this.#server?.kill("group");
      return true;
    });
    const server = await this.#start("failing", { ...this.#arming(), ...retention });
    if (this.#settings.host === "standalone")
      void server.ended.then((code) => code === null && this.#onFailpoint());
    const cron = { over: false };
    if (server.isRunning && this.#workload !== "load") void this.#runCrons(server, cron);
    if (server.isRunning && !this.#isSetUp) {
      this.#clients = this.#startClients(server);
      if (this.#settings.killsClient)
        setTimeout(() => this.#clients?.killOne(this.#random), this.#random.between(300, 900)).unref();
    }
    const isReached = await Promise.race([killed, sleep(PATIENCE_MS).then(() => false)]);
    cron.over = true;
    if (server.output.includes(UNNAMED)) this.#complaints.push(UNNAMED);
    if (!isReached) {
      this.#complaints.push("the failpoint was not reached");
      await server.kill("group");
    }
    this.#kills += 1;
    await this.#afterDeath();
  }

  async #runCrons(server: Server, cron: { over: boolean }): Promise<void> {
    while (!cron.over && server.isRunning) {
      await fetch(`${server.url}${CRON_PATH}`).catch(() => {});
      await sleep(150);
    }
  }

  async #dieAtRandom(killTargets: readonly KillTarget[]): Promise<void> {
    let server = await this.#start("production");
    this.#clients = this.#startClients(server);
    for (const [index, target] of killTargets.entries()) {
      if (!server.isRunning) server = await this.#start("production");
      // Mostly under full load. Sometimes right after the start, during recovery.
      if (index === 0 || this.#random.chance(0.6)) await this.#clients.waitForRecords(FLOW_BYTES);
      await sleep(this.#random.between(0, 1_500));
      if (this.#settings.killsClient && index === 0) this.#clients.killOne(this.#random);
      await this.#kill(server, target);
    }
    await this.#afterDeath();
  }

  async #kill(server: Server, target: KillTarget): Promise<void> {
    await server.kill(target);
    this.#kills += 1;
    if (target !== "workerd") return;
    // Node starts another runtime. Sometimes the server is stopped before that runtime is ready.
    const isBack = this.#random.chance(0.7) ? server.isBack() : this.#stop(server).then(() => true);
    if (await Promise.race([isBack, sleep(PATIENCE_MS).then(() => false)])) return;
    this.#complaints.push("a server whose runtime was killed neither recovered nor ended");
    await server.kill("group");
  }

  /** Starts the production server on the same state. Clients continue, or were killed. */
  async #afterDeath(): Promise<void> {
    const { clientsSurvive } = this.#settings;
    if (!clientsSurvive) this.#complaints.push(...((await this.#clients?.end("SIGUSR2")) ?? []));
    const current = this.#server;
    const server = current?.isRunning === true ? current : await this.#start("production", this.#arming());
    // If the server died at one of its first writes, clients start now, so that there is something to verify.
    const isFresh =
      this.#isSetUp ||
      (clientsSurvive
        ? this.#clients?.areRunning === false
        : !isLoaded(readRecords(join(this.#folder, "records"))));
    if (isFresh) this.#clients = this.#startClients(server);
    if (!clientsSurvive && !isFresh) return;
    await this.#clients?.waitForRecords(FLOW_BYTES);
    this.#complaints.push(...((await this.#clients?.end("SIGTERM")) ?? []));
  }

  async #verify(records: Records): Promise<number> {
    const server = this.#server;
    if (server === undefined) throw new Error("there is no server");
    const cells = cellIds.map((cell) => ({
      cell,
      database: new LocalDatabase(join(this.#folder, "cells", `cell-${cell}.sqlite`)),
    }));
    const fetchAndRecord = this.#recordingFetch();
    const verifier = new Verifier(
      { url: server.url, keys: server.keys, fetch: fetchAndRecord },
      cells,
      records,
    );
    this.#complaints.push(...(await verifier.all({ forgetful: this.#workload === "prune" })));
    const hidden = await fetch(`${server.url}${CRON_PATH}`);
    if (hidden.status !== 404) this.#complaints.push(`production answers ${CRON_PATH} with ${hidden.status}`);
    await this.#letLedgersWrite(server, fetchAndRecord);
    const claims = new Set(
      cells.flatMap(({ cell, database }) => database.rows().map((row) => `${bucketOf(row)} of cell ${cell}`)),
    );
    for (const { database } of cells) database.close();
    await this.#stop(server);
    await this.#judgeFiles(claims);
    if (this.#workload === "cron" || this.#workload === "prune") await this.#judgeCron();
    return verifier.replays;
  }

  #recordingFetch(): Fetch {
    const file = openSync(join(this.#folder, "history", "verifier.ndjson"), "a");
    const history = new History({
      name: "verifier/",
      now: nowMs,
      write: (line) => void writeSync(file, line),
    });
    return recordingFetch(history, "verifier", (url, init) => fetch(url, init));
  }

  /** Gives sweeps their time, and makes every ledger answer and write. */
  async #letLedgersWrite(server: Server, fetchAndRecord: Fetch): Promise<void> {
    if (this.#settings.isPatient) return sleep(ALARM_MS);
    await sleep(500);
    for (const cell of cellIds) {
      const client = createClient({
        ...patience,
        deadlineMs: PATIENCE_MS,
        url: server.url,
        key: server.keys.cells[cell] ?? "",
        cell,
        fetch: fetchAndRecord,
      });
      const leases = new ClientLeases(client);
      const answer = await leases.rollback(this.#random.uuid());
      if (answer.kind !== "ok")
        this.#complaints.push(`a rollback of an unknown lease got ${JSON.stringify(answer)}`);
    }
  }

  async #stop(server: Server): Promise<void> {
    const code = await server.stop();
    if (code !== 0) this.#complaints.push(`the server ended with ${code}: ${server.output.slice(-300)}`);
  }

  async #judgeFiles(rows: ReadonlySet<string>): Promise<void> {
    const state = join(this.#folder, "state");
    if (readStores(state).leftovers.length > 0) await this.#giveTime();
    const { claims, leftovers } = readStores(state);
    this.#complaints.push(...leftovers);
    const stored = claims.map(({ bucket, cell }) => `${bucket} of cell ${cell}`);
    const buckets = new Set(claims.map(({ bucket }) => bucket));
    if (buckets.size !== claims.length) this.#complaints.push("a name is stored by two shards");
    for (const claim of stored)
      if (!rows.has(claim)) this.#complaints.push(`stored without a row of a cell: ${claim}`);
    if (stored.length !== rows.size)
      this.#complaints.push(`${stored.length} claims are stored, but the cells have ${rows.size} rows`);
  }

  /** The server may have stopped before its alarms. It is started once more, without other work. */
  async #giveTime(): Promise<void> {
    const server = await this.#start("production");
    await fetch(`${server.url}/v1/admin/cells`, {
      headers: { authorization: `Bearer ${server.keys.operator}` },
    });
    await fetch(`${server.url}/readyz`);
    const state = join(this.#folder, "state");
    for (const endMs = performance.now() + PATIENCE_MS; performance.now() < endMs; await sleep(200))
      if (readStores(state).leftovers.length === 0) break;
    await this.#stop(server);
  }

  /** Two more cron runs must make the projection match the ledgers. */
  async #judgeCron(): Promise<void> {
    const server = await this.#start("failing");
    for (let run = 0; run < 2; run += 1) {
      const { status } = await fetch(`${server.url}${CRON_PATH}`);
      if (status !== 204) this.#complaints.push(`a run of the cron got ${status}`);
    }
    await this.#stop(server);
    const state = join(this.#folder, "state");
    this.#complaints.push(...judgeRecord(state));
  }

  /**
   * Checks the history of all clients. Not used after a prune, because the checker does not model forgotten
   * outcomes.
   */
  #checkHistory(): number {
    const folder = join(this.#folder, "history");
    const events = readHistory(
      ...readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8")),
    );
    const result = checkHistory(events);
    if (!result.ok) {
      this.#complaints.push(`the history of ${result.bucket} cannot be ordered: ${result.explanation}`);
      return 0;
    }
    for (const bucket of result.undecided)
      this.#complaints.push(`the history of ${bucket} is undecided: the search for an order was stopped`);
    if (result.operations === 0 && !this.#isSetUp)
      this.#complaints.push("the history is empty, so there was nothing to order");
    return result.operations;
  }
}

const countOf = ({ calls }: Records, kind: string, answer: string): number =>
  calls.filter((call) => call.kind === kind && call.answer.kind === answer).length;

const isLoaded = (records: Records): boolean =>
  countOf(records, "begin", "ok") > 0 && countOf(records, "commit", "ok") > 0;

const bucketOf = ({ type, value }: { type: string; value: string }): string =>
  `${shipped.named("bucket", type)?.number} ${value.toLowerCase()}`;
