/** Tests of the points of the ledger that a cell stores. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { BackgroundWork } from "../../../src/users/cell/background-work.ts";
import { SavedHistory, type LedgerHistoryTable } from "../../../src/users/cell/saved-history.ts";
import { LedgerHistory, type LedgerPoint } from "../../../src/users/client/ledger-history.ts";

const at = (incarnation: number, position: number): LedgerPoint => ({ incarnation, position });

/** A table in memory that counts its calls, and fails while it is told to. */
class Table implements LedgerHistoryTable {
  readonly rows = new Map<number, number>();
  readonly calls: string[] = [];
  fails = false;

  async load(): Promise<LedgerPoint[]> {
    this.#called("load");
    return [...this.rows].map(([incarnation, position]) => at(incarnation, position));
  }

  async save(_: string, points: readonly LedgerPoint[]): Promise<void> {
    this.#called(`save ${points.map(({ incarnation, position }) => `${incarnation}.${position}`).join()}`);
    for (const { incarnation, position } of points)
      this.rows.set(incarnation, Math.max(position, this.rows.get(incarnation) ?? 0));
  }

  async remove(_: string, points: readonly LedgerPoint[]): Promise<void> {
    for (const { incarnation, position } of points)
      if ((this.rows.get(incarnation) ?? 0) <= position) this.rows.delete(incarnation);
  }

  #called(what: string): void {
    if (this.fails) throw new Error("the database is down");
    this.calls.push(what);
  }
}

function processOf(table: Table) {
  const history = new LedgerHistory();
  const errors: string[] = [];
  const background = new BackgroundWork();
  const saved = new SavedHistory(
    table,
    "7",
    history,
    (work) => background.start(work),
    (error) => errors.push(error),
  );
  return { history, saved, errors, background };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("[L7] the points are loaded before the first call, and not again", async () => {
  const table = new Table();
  table.rows.set(1, 5);
  const { history, saved } = processOf(table);
  await saved.load();
  await saved.load();
  expect(table.calls).toEqual(["load"]);
  expect(history.next()).toEqual(at(1, 5));
});

test("[L7] a cell that cannot load its points makes no call, and loads again at the next one", async () => {
  const table = new Table();
  table.rows.set(1, 5);
  const { history, saved } = processOf(table);
  table.fails = true;
  await expect(saved.load()).rejects.toThrow("the database is down");
  table.fails = false;
  await saved.load();
  expect(history.points).toEqual([at(1, 5)]);
});

test("a process writes at most every 5 s, and only what has changed", async () => {
  const table = new Table();
  const { history, saved } = processOf(table);
  await saved.load();
  for (let position = 1; position <= 100; position += 1) {
    history.answered(history.next(), `1.${position}`);
    await saved.saveIfDue();
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(5_000);
  await saved.saveIfDue();
  await vi.advanceTimersByTimeAsync(5_000);
  await saved.saveIfDue();
  const writes = table.calls.filter((call) => call.startsWith("save"));
  expect(writes).toEqual(["save 1.1", "save 1.51", "save 1.100"]);
});

test("[L7] an idle process saves its last point", async () => {
  const table = new Table();
  const { history, saved } = processOf(table);
  await saved.load();
  history.answered(undefined, "1.5");
  await saved.saveIfDue();
  history.answered(history.next(), "1.6");
  await saved.saveIfDue();
  expect([...table.rows]).toEqual([[1, 5]]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect([...table.rows]).toEqual([[1, 6]]);
});

test("[L7] a save does not wait for one that is under way, and writes the same points", async () => {
  const table = new Table();
  const { history, saved } = processOf(table);
  await saved.load();
  const write = table.save.bind(table);
  table.save = () => new Promise(() => {});
  history.answered(undefined, "1.5");
  void saved.save();
  table.save = write;
  await saved.save();
  expect([...table.rows]).toEqual([[1, 5]]);
});

test("[L7] a flush waits for the save of an idle process, so nothing is written after it", async () => {
  const table = new Table();
  const { history, background } = processOf(table);
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const write = table.save.bind(table);
  table.save = async (cell, points) => {
    await gate;
    await write(cell, points);
  };
  history.answered(undefined, "1.5");
  await vi.advanceTimersByTimeAsync(5_000);
  let isSaved = false;
  const saving = background.finish(60_000).then(() => (isSaved = true));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(isSaved).toBe(false);
  open();
  await saving;
  expect(table.calls).toEqual(["save 1.5", "load"]);
  expect([...table.rows]).toEqual([[1, 5]]);
});

test("[L7] a call that takes long saves the points of its answers", async () => {
  const table = new Table();
  const { history, saved } = processOf(table);
  await saved.load();
  for (const position of [5, 6, 7]) {
    history.answered(history.next(), `1.${position}`);
    await vi.advanceTimersByTimeAsync(5_000);
  }
  expect(table.calls.filter((call) => call.startsWith("save"))).toEqual(["save 1.5", "save 1.6", "save 1.7"]);
});

test("after a save, no timer is left, and an answer without a new point starts none", async () => {
  const { history, saved } = processOf(new Table());
  await saved.load();
  history.answered(undefined, "1.5");
  expect(vi.getTimerCount()).toBe(1);
  await saved.save();
  history.answered(history.next(), "1.5");
  history.answered(history.next(), null);
  expect(vi.getTimerCount()).toBe(0);
});

test("a write that fails is reported, and repeated later", async () => {
  const table = new Table();
  const { history, saved, errors } = processOf(table);
  await saved.load();
  history.answered(undefined, "1.5");
  table.fails = true;
  await saved.save();
  await saved.saveIfDue();
  expect(errors).toEqual(["the database is down"]);
  table.fails = false;
  await vi.advanceTimersByTimeAsync(5_000);
  await saved.saveIfDue();
  expect([...table.rows]).toEqual([[1, 5]]);
});

test("[L7] a process takes over what another one has seen, and forgets nothing of it", async () => {
  const table = new Table();
  const [one, two] = [processOf(table), processOf(table)];
  await one.saved.load();
  await two.saved.load();
  one.history.answered(undefined, "1.100");
  await one.saved.save();
  // The ledger went back to 1.50 and was restarted. The second process knows no more than that.
  two.history.answered(at(1, 50), "2.51");
  await two.saved.save();
  expect([...table.rows]).toEqual([
    [1, 100],
    [2, 51],
  ]);
  expect(two.history.points).toEqual([at(1, 100), at(2, 51)]);
});

test("a point that the ledger has confirmed is deleted when a newer instance has answered", async () => {
  const table = new Table();
  table.rows.set(1, 5);
  const { history, saved } = processOf(table);
  await saved.load();
  history.answered(history.next(), "2.6");
  await saved.save();
  expect([...table.rows]).toEqual([[2, 6]]);
  expect(history.replaced).toEqual([]);
});

test("[L7] an idle process tries a failed save again, at growing intervals", async () => {
  const table = new Table();
  const { history, saved, errors } = processOf(table);
  await saved.load();
  history.answered(undefined, "1.5");
  table.fails = true;
  await vi.advanceTimersByTimeAsync(21_000);
  expect(errors).toHaveLength(3);
  table.fails = false;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(table.rows.get(1)).toBe(5);
  expect(vi.getTimerCount()).toBe(0);
});

test("an idle process whose database stays away gives up until the next answer", async () => {
  const table = new Table();
  const { history, saved, errors } = processOf(table);
  await saved.load();
  history.answered(undefined, "1.5");
  table.fails = true;
  await vi.advanceTimersByTimeAsync(6 * 3_600_000);
  expect(errors).toHaveLength(11);
  expect(vi.getTimerCount()).toBe(0);
  table.fails = false;
  history.answered(history.next(), "1.6");
  await vi.advanceTimersByTimeAsync(5_000);
  expect(table.rows.get(1)).toBe(6);
});

test("many cells of one client have one timer, and save a point once", async () => {
  const table = new Table();
  const history = new LedgerHistory();
  const background = new BackgroundWork();
  const cells = Array.from(
    { length: 1_000 },
    () =>
      new SavedHistory(
        table,
        "7",
        history,
        (work) => background.start(work),
        () => {},
      ),
  );
  history.answered(undefined, "1.5");
  expect(cells).toHaveLength(1_000);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(table.calls.filter((call) => call.startsWith("save"))).toEqual(["save 1.5"]);
});
