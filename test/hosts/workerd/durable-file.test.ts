import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  makeFolder,
  syncFile,
  writeDurably,
  type FileSteps,
} from "../../../src/hosts/workerd/durable-file.ts";

/** A disk on which only what was synced is sure to survive a power failure. */
class Disk implements FileSteps {
  /** Content by number. Undefined means that it was not synced, so it may be empty or cut off. */
  readonly #synced = new Map<number, string | undefined>();
  readonly #written = new Map<number, string>();
  #names = new Map<string, number>();
  /** Every state that the names may be in after a power failure. */
  #possibleNames: Map<string, number>[] = [new Map()];
  #stepsLeft: number;

  constructor(stepsLeft: number) {
    this.#stepsLeft = stepsLeft;
  }

  set stepsLeft(steps: number) {
    this.#stepsLeft = steps;
  }

  #step(): void {
    if (this.#stepsLeft === 0) throw new Error("power failure");
    this.#stepsLeft -= 1;
  }

  #rename(change: (names: Map<string, number>) => void): void {
    change(this.#names);
    this.#possibleNames.push(new Map(this.#names));
  }

  write(path: string, text: string): Promise<void> {
    this.#step();
    const content = this.#written.size;
    this.#written.set(content, text);
    this.#synced.set(content, undefined);
    this.#rename((names) => names.set(path, content));
    return Promise.resolve();
  }

  syncFile(path: string): Promise<void> {
    this.#step();
    const content = this.#names.get(path) ?? -1;
    this.#synced.set(content, this.#written.get(content));
    return Promise.resolve();
  }

  rename(from: string, to: string): Promise<void> {
    this.#step();
    this.#rename((names) => {
      names.set(to, names.get(from) ?? -1);
      names.delete(from);
    });
    return Promise.resolve();
  }

  syncFolder(): Promise<void> {
    this.#step();
    this.#possibleNames = [new Map(this.#names)];
    return Promise.resolve();
  }

  /** What the file may contain after a power failure. Null means that it is missing, "" that it lost data. */
  afterPowerFailure(path: string): Set<string | null> {
    return new Set(
      this.#possibleNames.map((names) => {
        const content = names.get(path);
        return content === undefined ? null : (this.#synced.get(content) ?? "");
      }),
    );
  }
}

const STEPS = 4;

test("after a power failure at any step, a file has its old or its new content, or is missing", async () => {
  for (let steps = 0; steps <= STEPS; steps += 1) {
    const disk = new Disk(steps);
    const first = writeDurably("file", "first", disk);
    if (steps < STEPS) await expect(first).rejects.toThrow("power failure");
    else await first;
    const possible = steps < STEPS ? ["first", null] : ["first"];
    expect(disk.afterPowerFailure("file").difference(new Set(possible))).toEqual(new Set());

    // A second write finds whatever the interrupted one left.
    disk.stepsLeft = STEPS;
    await writeDurably("file", "second", disk);
    expect(disk.afterPowerFailure("file")).toEqual(new Set(["second"]));
    for (let again = 0; again < STEPS; again += 1) {
      disk.stepsLeft = again;
      await expect(writeDurably("file", "third", disk)).rejects.toThrow("power failure");
      expect(disk.afterPowerFailure("file").difference(new Set(["second", "third"]))).toEqual(new Set());
    }
  }
});

test("the test's disk finds a write without one of the two syncs", async () => {
  const lost = async (omitted: "syncFile" | "syncFolder"): Promise<Set<string | null>> => {
    const disk = new Disk(Infinity);
    const steps: FileSteps = {
      write: (path, text) => disk.write(path, text),
      rename: (from, to) => disk.rename(from, to),
      syncFile: (path) => (omitted === "syncFile" ? Promise.resolve() : disk.syncFile(path)),
      syncFolder: () => (omitted === "syncFolder" ? Promise.resolve() : disk.syncFolder()),
    };
    await writeDurably("file", "first", steps);
    return disk.afterPowerFailure("file");
  };
  expect(await lost("syncFile")).toEqual(new Set([""]));
  expect(await lost("syncFolder")).toEqual(new Set([null, "first"]));
});

test("a leftover temporary file does not matter, and only the owner can read the result", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-durable-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "file");
  writeFileSync(`${path}.new`, "a much longer text that an interrupted write left behind", { mode: 0o644 });
  await writeDurably(path, "short");
  expect(readFileSync(path, "utf8")).toBe("short");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(() => statSync(`${path}.new`)).toThrow("ENOENT");
});

test("a file that cannot be written can be synced", async () => {
  // Nobody can write the program of a running process, not even root.
  await syncFile(process.execPath);
});

test("a new folder and its parents are private, and a folder that cannot be made is an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-durable-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await makeFolder(join(folder, "a", "b"));
  await makeFolder(join(folder, "a", "b"));
  for (const path of ["a", "a/b"]) expect(statSync(join(folder, path)).mode & 0o777).toBe(0o700);
  await expect(makeFolder("/proc/leasehold/copy")).rejects.toThrow("ENOENT");
});
