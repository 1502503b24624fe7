import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import type { Random } from "../../../demo/random.ts";
import { endOf, killGroup, startGroup } from "../crash/server.ts";
import type { CellConfig } from "./open-cell.ts";
import type { SignUpProcessOptions } from "./sign-up-process.ts";

export interface ProcessesOptions extends Pick<SignUpProcessOptions, "seed" | "concurrency" | "names"> {
  configs: readonly CellConfig[];
  /** Processes of each cell. */
  each: number;
  /** The folder that contains `records`. */
  folder: string;
}

/** The processes of all cells. A killed process is replaced by another one. */
export class Processes {
  readonly #options: ProcessesOptions;
  readonly #running = new Map<CellConfig, ChildProcess[]>();
  /** Processes that ended on their own. */
  readonly complaints: string[] = [];
  #started = 0;

  constructor(options: ProcessesOptions) {
    this.#options = options;
    for (const config of options.configs)
      this.#running.set(
        config,
        Array.from({ length: options.each }, () => this.#start(config)),
      );
  }

  async killOne(random: Random): Promise<void> {
    const [config] = random.shuffled([...this.#running.keys()]);
    if (config === undefined) return;
    const running = this.#running.get(config) ?? [];
    const at = random.between(0, running.length - 1);
    const child = running[at];
    if (child === undefined) return;
    killGroup(child.pid);
    await endOf(child);
    running[at] = this.#start(config);
  }

  /** Lets all processes finish their current operations. */
  async end(): Promise<void> {
    const all = [...this.#running.values()].flat();
    for (const child of all) child.kill("SIGTERM");
    await Promise.all(all.map(endOf));
  }

  #start(config: CellConfig): ChildProcess {
    const { folder, seed, concurrency, names } = this.#options;
    const name = `cell-${config.cell}-${(this.#started += 1)}`;
    const options: SignUpProcessOptions = {
      config,
      folder: join(folder, "records"),
      name,
      seed,
      concurrency,
      names,
    };
    const child = startGroup(
      "test/rigs/cell-crash/sign-up-process.ts",
      [JSON.stringify(options)],
      {},
      join(folder, `${name}.log`),
    );
    child.once("exit", (code) => {
      if (code !== null && code !== 0) this.complaints.push(`process ${name} ended with ${code}`);
    });
    return child;
  }
}
