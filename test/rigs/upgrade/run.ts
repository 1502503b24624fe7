import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { judgeRecord, readStores } from "../crash/state-files.ts";
import { combinations, type VersionName } from "./control.ts";
import { Load, type Pace } from "./load.ts";
import { Mixed, objectNames, type Answered } from "./mixed.ts";
import { refusesToStart } from "./no-way-back.ts";
import { NEXT_FEATURE, NEXT_FORMAT, NEXT_MIGRATION, NEXT_PATH, NEXT_RELEASE } from "./pieces.ts";

export interface RunOptions {
  /** An empty folder. */
  folder: string;
  seed: number;
  pace: Pace;
  /** How long a phase takes. Undefined: a number of cycles, whatever they take. */
  phaseMs?: number;
  /** Kills workerd and its host again and again. */
  killEveryMs?: number;
  /** One of `bugs` in pieces.ts, which the next version has. */
  bug?: string;
  log: (line: string) => void;
}

export interface RunResult {
  load: Load;
  kills: number;
  /** What must not have happened. Empty if the run passed. */
  complaints: string[];
}

/** The cycles of a phase, and between two updates of objects, if phases have no time. */
const PHASE_CYCLES = 60;
const UPDATE_CYCLES = 4;
/** Older code that an object has heard keeps an upgrade from being finished for a minute. */
const OLDER_HEARD_MS = 90_000;
const NAMES_OF_CELL = 150;
/** Objects of each kind that return to today's version when there is no way back any more. */
const RETURNING = ["directory", "cell-2", "shard-3"];

const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

/** An upgrade from today's version to the next one under load, the way back, and the finish. */
export async function runUpgrade(options: RunOptions): Promise<RunResult> {
  const mixed = await Mixed.start(options.folder, options.seed, options.bug);
  const run = new Upgrading(options, mixed);
  try {
    return await run.run();
  } finally {
    await mixed.close();
  }
}

class Upgrading {
  readonly #options: RunOptions;
  readonly #mixed: Mixed;
  readonly #load: Load;
  readonly #complaints: string[] = [];
  #kills = 0;

  constructor(options: RunOptions, mixed: Mixed) {
    this.#options = options;
    this.#mixed = mixed;
    const { url, keys } = mixed.server;
    const isPatient = options.killEveryMs !== undefined;
    this.#load = new Load({ url, keys, seed: options.seed, isPatient, namesOfCell: NAMES_OF_CELL });
  }

  async run(): Promise<RunResult> {
    const mixed = this.#mixed;
    await this.#phase("today", () => this.#wait());
    await this.#phase("to the next version", () => this.#shift("next"));
    await this.#phase("next version", () => this.#wait());
    await this.#expect("UPGRADE_UNFINISHED", () => this.#newestFirst());
    await this.#phase("back to today's", () => this.#shift("today"));
    await this.#phase("today again", () => this.#wait());
    await this.#phase("to the next again", () => this.#shift("next"));
    await this.#expectCombinations();
    await this.#expectBlocked();
    mixed.useNextProgram();
    await this.#phase("finish", () => this.#finish());
    await this.#phase("format 2", () => this.#wait());
    const { status } = await this.#newestFirst();
    if (status !== 200) this.#complain(`${NEXT_FEATURE}: ${status} after the finish`);
    await this.#expectNoWayBack();
    await this.#phase("after the attempt to go back", () => this.#wait());
    await this.#load.verify();
    await this.#inspect();
    const { failures } = this.#load;
    const complaints = [...failures, ...this.#complaints, ...this.#load.complaints];
    return { load: this.#load, kills: this.#kills, complaints };
  }

  #complain(what: string): void {
    this.#complaints.push(what);
  }

  async #phase(name: string, work: () => Promise<void>): Promise<void> {
    this.#options.log(name);
    await this.#load.begin(name);
    const { killEveryMs, pace } = this.#options;
    const ending = { soon: false };
    await this.#load.runDuring(pace, async () => {
      const killing = killEveryMs === undefined ? undefined : this.#kill(killEveryMs, ending);
      await work();
      ending.soon = true;
      await killing;
    });
  }

  async #kill(everyMs: number, ending: { soon: boolean }): Promise<void> {
    for (;;) {
      await sleep(everyMs);
      if (ending.soon) return;
      await this.#mixed.kill();
      this.#kills += 1;
    }
  }

  async #wait(): Promise<void> {
    const { phaseMs } = this.#options;
    await (phaseMs === undefined ? this.#load.passed(PHASE_CYCLES) : sleep(phaseMs));
  }

  /** Updates all objects one after the other. D1 gets its migration at the first upgrade, half-way. */
  async #shift(version: VersionName): Promise<void> {
    const { phaseMs } = this.#options;
    let updated = 0;
    await this.#runCrons();
    await this.#mixed.shift(version, async () => {
      updated += 1;
      await (phaseMs === undefined ? this.#load.passed(UPDATE_CYCLES) : sleep(phaseMs / objectNames.length));
      if (updated !== Math.floor(objectNames.length / 2)) return;
      await this.#runCrons();
      await this.#mixed.control({ migration: NEXT_MIGRATION });
      await this.#runCrons();
    });
    await this.#runCrons();
  }

  /** They call all objects, so before and after an update these meet both versions. */
  async #runCrons(): Promise<void> {
    await this.#mixed.control({ cron: "today" });
    await this.#mixed.control({ cron: "next" });
  }

  #newestFirst(): Promise<Answered> {
    return this.#mixed.call("GET", NEXT_PATH.replace("{cell}", "1"));
  }

  async #expect(reason: string, call: () => Promise<Answered>, named = ""): Promise<void> {
    const { status, body } = await call();
    if (body.reason !== reason || body.detail?.toLowerCase().includes(named) !== true)
      this.#complain(`expected ${reason} ${named}, but got ${status} ${JSON.stringify(body)}`);
  }

  /** Each version has called each object of each version. */
  async #expectCombinations(): Promise<void> {
    await this.#mixed.control({});
    const { calls, cronRuns, requests } = this.#mixed.ran;
    this.#options.log(JSON.stringify({ requests, cronRuns, calls }));
    if (this.#kills > 0) return;
    const missing = combinations.filter((each) => calls[each] === undefined);
    if (missing.length > 0) this.#complain(`there were no calls of ${missing.join("; ")}`);
  }

  /** An upgrade is not finished while a part runs older code. */
  async #expectBlocked(): Promise<void> {
    // The refusal names only the first parts, and in a long run all of them have just heard older code.
    await this.#mixed.setObject("shard-0", "today");
    await this.#expect("UPGRADE_BLOCKED", () => this.#tryFinish(), "shard-0");
    await this.#mixed.setObject("shard-0", "next");
  }

  #tryFinish(): Promise<Answered> {
    return this.#mixed.call("POST", "/v1/admin/upgrade/finish", { format: NEXT_FORMAT, reason: "the rig" });
  }

  /** Finishes the upgrade, and waits until all parts have heard of it. */
  async #finish(): Promise<void> {
    const { phaseMs } = this.#options;
    // New instances have heard no older code, so a short run need not wait for a minute.
    if (phaseMs === undefined) await this.#mixed.setAll("next");
    for (const untilMs = performance.now() + OLDER_HEARD_MS; ;) {
      const { status, body } = await this.#tryFinish().catch((error: unknown) => ({
        status: 0,
        body: { detail: String(error) } as Answered["body"],
      }));
      if (status === 200 && body.upgrade?.is_finished === true && body.upgrade.blockers.length === 0) return;
      if (performance.now() > untilMs)
        throw new Error(`the upgrade cannot be finished: ${status} ${JSON.stringify(body)}`);
      await sleep(500);
    }
  }

  /**
   * Today's objects refuse to work, by name, and objects refuse today's Worker. With the next version, all
   * goes on.
   */
  async #expectNoWayBack(): Promise<void> {
    await this.#mixed.setWorker("today");
    await this.#expect("FORMAT_UNKNOWN", () => this.#mixed.call("GET", "/v1/cells/2/leases"));
    await this.#mixed.setWorker("next");
    for (const name of RETURNING) await this.#mixed.setObject(name, "today");
    const refused: Record<string, string> = {
      directory: "/v1/admin/cells",
      "cell-2": "/v1/cells/2/leases",
      "shard-3": "/v1/cells/1/records?source_type=RAILS_TABLE_ROUTES",
    };
    for (const [name, path] of Object.entries(refused))
      await this.#expect("UNKNOWN_TABLES", () => this.#mixed.call("GET", path), name);
    for (const name of RETURNING) await this.#mixed.setObject(name, "next");
  }

  /** Inspects the files of a stopped coordinator. */
  async #inspect(): Promise<void> {
    const { folder } = this.#options;
    await this.#mixed.control({ cron: "next" });
    await sleep(2_000);
    const code = await this.#mixed.stop();
    if (code !== 0) this.#complain(`the coordinator ended with ${code}`);
    const state = join(folder, "state");
    // The lease of a call that failed may be left.
    if (this.#load.failures.length === 0)
      this.#complaints.push(...readStores(state).leftovers, ...judgeRecord(state));
    const granted = { today: 0, next: 0 };
    for (const path of objectFiles(state)) {
      const file = new DatabaseSync(path, { readOnly: true });
      const tables = file.prepare("SELECT value FROM meta WHERE name = 'tables'").get()?.["value"];
      const { format } = JSON.parse(String(tables)) as { format: number };
      if (format !== NEXT_FORMAT) this.#complain(`${path} has format ${format} after the finish`);
      if (path.includes("CellLedger")) {
        const sql = "SELECT count(*) AS all_leases, count(granted_by) AS next FROM lease";
        const row = file.prepare(sql).get();
        granted.next += Number(row?.["next"]);
        granted.today += Number(row?.["all_leases"]) - Number(row?.["next"]);
      }
      file.close();
    }
    this.#options.log(
      `leases granted by today's version: ${granted.today}, by ${NEXT_RELEASE}: ${granted.next}`,
    );
    if (granted.today === 0 || granted.next === 0) this.#complain("a version has granted nothing");
    this.#complaints.push(...(await refusesToStart({ kind: "production", folder })));
  }
}

function objectFiles(state: string): string[] {
  const folder = join(state, "storage/do");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".sqlite") && !name.includes("metadata"))
    .map((name) => join(folder, name));
}
