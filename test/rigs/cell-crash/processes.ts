import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import type { Random } from "../../../demo/random.ts";
import { endOf, killGroup, startGroup } from "../crash/server.ts";
import type { Place } from "./open-cell.ts";
import type { LoadOptions } from "./sign-up-process.ts";

export interface ProcessesOptions extends Pick<LoadOptions, "seed" | "lanes" | "names"> {
  places: readonly Place[];
  /** Of each cell. */
  each: number;
  /** With `records` in it. */
  folder: string;
}

/** The processes of all cells. Where one is killed another one takes its place. */
export class Processes {
  readonly #options: ProcessesOptions;
  readonly #running = new Map<Place, ChildProcess[]>();
  /** Of those that ended by themselves. */
  readonly complaints: string[] = [];
  #started = 0;

  constructor(options: ProcessesOptions) {
    this.#options = options;
    for (const place of options.places)
      this.#running.set(
        place,
        Array.from({ length: options.each }, () => this.#start(place)),
      );
  }

  async killOne(random: Random): Promise<void> {
    const [place] = random.shuffled([...this.#running.keys()]);
    if (place === undefined) return;
    const running = this.#running.get(place) ?? [];
    const at = random.between(0, running.length - 1);
    const victim = running[at];
    if (victim === undefined) return;
    killGroup(victim.pid);
    await endOf(victim);
    running[at] = this.#start(place);
  }

  /** Lets them finish what they are doing. */
  async end(): Promise<void> {
    const all = [...this.#running.values()].flat();
    for (const child of all) child.kill("SIGTERM");
    await Promise.all(all.map(endOf));
  }

  #start(place: Place): ChildProcess {
    const { folder, seed, lanes, names } = this.#options;
    const name = `cell-${place.cell}-${(this.#started += 1)}`;
    const options: LoadOptions = { place, folder: join(folder, "records"), name, seed, lanes, names };
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
