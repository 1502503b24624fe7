/** Moves organizations between two cells on PostgreSQL, behind a router. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient, isLeaseholdError, type Transfer } from "../../../src/users/client/index.ts";
import { createRoutes, type Routes } from "../../../src/users/router/index.ts";
import { prefixes, serve, stopServers } from "../../users/router/proxy/fixture.ts";
import { serveFiles, type Served } from "../../hosts/standalone/served.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { MovingCell, NotActive, users } from "./moving-cell.ts";

const USERS = 300;

/** Shards learn of the last commits after their callers. */
async function waits(error: unknown): Promise<undefined> {
  if (!isLeaseholdError(error) || error.reason !== "TRANSFER_BLOCKED") throw error;
  await new Promise((resolve) => void setTimeout(resolve, 50));
}

describe.skipIf(isSkipped("PostgreSQL"))("an organization moves", () => {
  let postgres: DatabaseServer;
  let served: Served;
  let cells: readonly [MovingCell, MovingCell];
  let routes: Routes;
  let router: string;

  beforeAll(async () => {
    postgres = await startPostgres();
    served = await serveFiles(["1", "2"], {});
    const { url, keys } = served;
    const operator = createClient({ url, key: keys.operator });
    const open = async (id: string): Promise<MovingCell> => {
      const databaseUrl = postgres.url(await postgres.createDatabase());
      const cell = new MovingCell({ id, url, key: keys.cell(id), databaseUrl });
      await cell.install();
      const address = await cell.listen();
      await operator.cells.add({ cell_id: id, name: `cell ${id}`, address });
      return cell;
    };
    cells = [await open("1"), await open("2")];
    // It waits for a busy machine as long as it can.
    routes = createRoutes({ url, key: keys.router, timeoutMs: 60_000 });
    router = await serve({ routes, ruleset: prefixes });
  });

  afterAll(async () => {
    routes.close();
    await stopServers();
    await Promise.all(cells.map((cell) => cell.stop()));
    await served.close();
    await postgres.stop();
  });

  async function founded(organization: string, count: number): Promise<string[]> {
    const [from] = cells;
    await from.setState(organization, "active");
    const paths = Array.from({ length: count }, (_, index) => `${organization}-${index}`);
    await from.cell.bulkInsert(
      users,
      paths.map((path) => ({ id: path, path, organization })),
    );
    return paths;
  }

  const prepare = async (
    [from, to]: readonly [MovingCell, MovingCell],
    scope: string,
    switchBackOf?: string,
  ): Promise<Transfer> => {
    await from.setState(scope, "read_only");
    const { transfers } = from.client;
    for (;;) {
      const transfer = await transfers.prepare({ to: to.id, scope }, { switchBackOf }).catch(waits);
      if (transfer === undefined) continue;
      await to.client.transfers.accept(transfer.id);
      return transfer;
    }
  };

  async function finished({ id }: Transfer): Promise<void> {
    const { transfers } = cells[0].client;
    await expect.poll(async () => (await transfers.get(id)).state).toBe("FINISHED");
  }

  const ask = async (path: string, method = "GET"): Promise<string> => {
    const answer = await fetch(`${router}/${path}`, { method });
    return answer.status === 200 ? answer.text() : String(answer.status);
  };

  async function disagreements(): Promise<number[]> {
    const found: number[] = [];
    for (const { cell } of cells) {
      const { counts } = await cell.verify({ recentMs: 0 });
      found.push(counts.missing, counts.different, counts.extra);
    }
    return found;
  }

  test("[Y4] [Y6] case 23: no write lands at the source, and the router finds the destination", async () => {
    const [from, to] = cells;
    const paths = await founded("acme", USERS);
    expect(await ask("acme-1")).toBe("1");
    // Visitors write all the time.
    let isOver = false;
    const over = (): boolean => isOver;
    // On a busy machine the router may not get the answer of a cell, which may have served the visitor.
    const visited = new Map(paths.map((path) => [path, { served: 0, unknown: 0 }]));
    const answers: Record<string, number> = {};
    const visiting = Promise.all(
      [1, 2, 3].map(async (visitor) => {
        for (let n = visitor; !over(); n += 3) {
          const path = `acme-${n % USERS}`;
          const answer = await ask(path, "POST");
          const counts = visited.get(path) ?? { served: 0, unknown: 0 };
          if (answer === "502" || answer === "504") counts.unknown += 1;
          if (answer === "1" || answer === "2") counts.served += 1;
          answers[answer] = (answers[answer] ?? 0) + 1;
        }
      }),
    );
    const untilAnswered = async (answer: string): Promise<void> => {
      const before = answers[answer] ?? 0;
      await expect.poll(() => answers[answer] ?? 0).toBeGreaterThan(before);
    };
    await untilAnswered("1");
    const transfer = await prepare(cells, "acme");
    await untilAnswered("503");
    await to.copy("acme", await from.rowsOf("acme"));
    await to.setState("acme", "read_only");
    expect((await to.cell.reportTransfer(transfer.id)).missing).toHaveLength(1);
    expect((await from.cell.reportTransfer(transfer.id)).missing).toEqual([]);
    expect(await ask("acme-1")).toBe("1");
    await from.client.transfers.cut(transfer.id);
    await from.setState("acme", "moved");
    await to.setState("acme", "active");
    await expect.poll(() => ask("acme-1")).toBe("2");
    await finished(transfer);
    for (const path of paths) expect(await ask(path)).toBe("2");
    await untilAnswered("2");
    isOver = true;
    await visiting;
    expect(["1", "2", "502", "503", "504"]).toEqual(expect.arrayContaining(Object.keys(answers)));
    for (const { path, visits } of await to.rowsOf("acme")) {
      const { served: least, unknown } = visited.get(path) ?? { served: 0, unknown: 0 };
      expect(visits, path).toBeGreaterThanOrEqual(least);
      expect(visits, path).toBeLessThanOrEqual(least + unknown);
    }
    await expect(
      from.write("acme", (tx) => tx.insert(users, { id: "late", path: "late", organization: "acme" })),
    ).rejects.toThrow(NotActive);
    await to.write("acme", (tx) => tx.insert(users, { id: "new", path: "new", organization: "acme" }));
  });

  test("[Y6] rows that were not copied keep a cut from happening, and an abort leaves no trace", async () => {
    const [from, to] = cells;
    await founded("brew", 20);
    const transfer = await prepare(cells, "brew");
    await to.copy("brew", (await from.rowsOf("brew")).slice(1));
    await from.cell.reportTransfer(transfer.id);
    expect(await to.cell.reportTransfer(transfer.id)).toMatchObject({
      missing: ["the rows that cell 2 has reported differ from the claims"],
      expected: { to: { count: 20 } },
      reports: { to: { count: 19 } },
    });
    await expect(from.client.transfers.cut(transfer.id)).rejects.toMatchObject({
      reason: "TRANSFER_NOT_READY",
    });
    await from.setState("brew", "active");
    const insert = (): Promise<unknown> =>
      from.write("brew", (tx) =>
        tx.insert(users, { id: "brew-new", path: "brew-new", organization: "brew" }),
      );
    await expect(insert()).rejects.toMatchObject({ code: "ABORTED" });
    await to.client.transfers.abort(transfer.id);
    await to.copy("brew", []);
    await expect.poll(() => insert().then(() => "saved", String)).toBe("saved");
    expect(await ask("brew-1")).toBe("1");
  });

  test("[Y9] a switch-back gives the names back while nobody has changed one", async () => {
    const [from, to] = cells;
    await founded("coda", 20);
    const first = await prepare(cells, "coda");
    await to.copy("coda", await from.rowsOf("coda"));
    for (const { cell } of cells) await cell.reportTransfer(first.id);
    await from.client.transfers.cut(first.id);
    await from.setState("coda", "moved");
    await finished(first);
    const back = await prepare([to, from], "coda", first.id);
    for (const { cell } of cells) await cell.reportTransfer(back.id);
    await to.client.transfers.cut(back.id);
    await from.setState("coda", "active");
    await finished(back);
    await to.copy("coda", []);
    expect(await ask("coda-1")).toBe("1");
  });

  test("in the end, the rows of both cells equal their claims", async () => {
    const [from, to] = cells;
    expect(await disagreements()).toContain(USERS);
    await from.copy("acme", []);
    expect(await disagreements()).toEqual([0, 0, 0, 0, 0, 0]);
    const owned = await to.orm.select().from(users).where(eq(users.organization, "acme"));
    expect(owned).toHaveLength(USERS + 1);
  });
});
