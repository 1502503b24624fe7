/** What routers are told. */
import { SkipError, type Check, type CheckContext } from "../check-context.ts";
import { pause, type Received } from "../api.ts";
import {
  describe,
  expectEqual,
  expectFields,
  expectRefusal,
  expectStatus,
  expectThat,
} from "../nonconformity.ts";

/** What a router may keep of an answer. */
interface RouteFacts {
  key: string;
  shard: number;
  position: number;
  settled: boolean;
  epoch?: number;
}

const askRoute = (context: CheckContext, name: string, query = ""): Promise<Received> =>
  context.send("GET", `/v1/route/${context.deployment.types.bucket}/${name}${query}`, { who: "router" });

function factsOf(received: Received): RouteFacts {
  const facts =
    received.status === 404
      ? (received.json as { route?: RouteFacts }).route
      : (received.json as RouteFacts | undefined);
  expectThat(
    typeof facts?.key === "string" && Number.isInteger(facts.position) && typeof facts.settled === "boolean",
    `${describe(received)}; it must have \`key\`, \`position\` and \`settled\``,
  );
  return facts;
}

const SETTLE_ATTEMPTS = 50;
const SETTLE_MS = 200;

/** Asks until the answer may be kept: shards may carry out decisions after they are answered (C3). */
async function settledRoute(context: CheckContext, name: string): Promise<RouteFacts> {
  for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt += 1) {
    const facts = factsOf(await askRoute(context, name));
    if (facts.settled) return facts;
    await pause(SETTLE_MS, context.signal);
  }
  throw new SkipError("the shards did not carry out the decisions in time");
}

interface Report {
  after: number;
  through: number;
  held: [distance: number, keys: string[]][];
  has_more: boolean;
}

const MAX_REPORTS = 1_000;

/** The keys that were put on hold after a position, with those positions. */
async function reportedAfter(
  context: CheckContext,
  shard: number,
  after: number,
): Promise<[number, string][]> {
  const reported: [number, string][] = [];
  for (let from = after, pages = 0; ; pages += 1) {
    expectThat(pages < MAX_REPORTS, `the reports of shard ${shard} have more than ${MAX_REPORTS} pages`);
    const received = await context.send("GET", `/v1/reports/${shard}?after=${from}`, { who: "router" });
    if (received.status === 410) throw new SkipError("the shard has dropped its reports meanwhile");
    expectStatus(received, 200);
    expectFields(received, { shard, after: from });
    const { through, held, has_more: hasMore } = received.json as Report;
    for (const [distance, keys] of held)
      reported.push(...keys.map((key): [number, string] => [from + distance, key]));
    if (!hasMore) return reported;
    expectThat(through > from, `${describe(received)}; a page with more after it must go on`);
    from = through;
  }
}

export const routeChecks: readonly Check[] = [
  {
    id: "route/settled",
    rules: ["Q2", "Q7", "R2"],
    title: "A route is found from the grant on, and may be kept only while no lease holds the name.",
    needs: ["router"],
    run: async (context) => {
      const name = context.name();
      const free = await askRoute(context, name);
      expectStatus(free, 404);
      expectEqual(factsOf(free).settled, true, "`settled` of a free name");
      const creating = await context.granted({ creates: [context.op(name)] });
      const granted = await askRoute(context, name);
      expectStatus(granted, 200);
      expectFields(granted, { cell: { id: context.cellId() }, settled: false });
      await context.commit(creating);
      const { epoch } = await settledRoute(context, name);
      expectEqual(epoch, factsOf(granted).epoch, "the epoch after the commit");
      const destroying = await context.granted({ destroys: [{ bucket: context.bucket(name) }] });
      expectFields(await askRoute(context, name), { cell: { id: context.cellId() }, settled: false });
      await context.commit(destroying);
      expectStatus(await askRoute(context, name), 404);
    },
  },
  {
    id: "route/positions-grow",
    rules: ["Q2", "E1"],
    title: "The position of a name's answers only grows, and each change of the name is at a later one.",
    needs: ["router"],
    run: async (context) => {
      const name = context.name();
      const positions = [factsOf(await askRoute(context, name)).position];
      for (let round = 0; round < 3; round += 1) {
        await context.commit(await context.granted({ creates: [context.op(name)] }));
        positions.push(factsOf(await askRoute(context, name)).position);
        await context.commit(await context.granted({ destroys: [{ bucket: context.bucket(name) }] }));
        positions.push(factsOf(await askRoute(context, name)).position);
      }
      for (const [index, position] of positions.entries())
        expectThat(
          index === 0 || position > (positions[index - 1] ?? 0),
          `the positions of a name that changes are ${positions.join(", ")}`,
        );
    },
  },
  {
    id: "route/positions-of-a-lease",
    rules: ["Q9"],
    title: "An answer that is asked for with the positions of a lease shows the lease.",
    needs: ["router"],
    run: async (context) => {
      const names = context.names(5);
      const lease = await context.granted({ creates: names.map((name) => context.op(name)) });
      const { positions } = lease.received.json as { positions?: Record<string, number> };
      expectThat(
        positions !== undefined && Object.keys(positions).length > 0,
        `${describe(lease.received)}; it must have \`positions\``,
      );
      const given = Object.entries(positions).map(([shard, position]) => `${shard}:${position}`);
      for (const name of names) {
        const received = await askRoute(context, name, `?min_position=${given.join(",")}`);
        expectStatus(received, 200);
        const { shard, position } = factsOf(received);
        const least = positions[String(shard)] ?? Infinity;
        expectThat(position >= least, `${describe(received)}; the lease has the position ${least}`);
      }
      await context.rollBack(lease);
    },
  },
  {
    id: "route/many",
    rules: ["Q2"],
    title: "Routes of many names are answered in order, and absent names say so.",
    needs: ["router"],
    run: async (context) => {
      const names = context.names(6);
      const owned = names.filter((_, index) => index % 2 === 0);
      await context.own(owned);
      const received = await context.send("POST", "/v1/route", {
        who: "router",
        body: { names: names.map((name) => context.bucket(name)) },
      });
      expectStatus(received, 200);
      expectFields(received, {
        results: names.map((name) =>
          owned.includes(name) ? { found: true, cell: { id: context.cellId() } } : { found: false },
        ),
      });
    },
  },
  {
    id: "report/held-keys",
    rules: ["Q1", "Q3"],
    title: "A report lists the key of every name that a lease put on hold after the position.",
    needs: ["router"],
    run: async (context) => {
      const names = context.names(4);
      for (const name of names) {
        const { shard, position, key } = factsOf(await askRoute(context, name));
        const lease = await context.granted({ creates: [context.op(name)] });
        const reported = await reportedAfter(context, shard, position);
        expectThat(
          reported.some(([at, held]) => held === key && at > position),
          `the reports of shard ${shard} after ${position} lack the key ${key}, which a lease put on hold`,
        );
        for (const [at] of reported) expectThat(at > position, `a report after ${position} has ${at}`);
        await context.rollBack(lease);
      }
    },
  },
  {
    id: "report/only-routers",
    rules: ["API"],
    title: "A cell gets no reports, and no epoch of another cell's route.",
    needs: ["router", "other"],
    run: async (context) => {
      const name = context.name();
      await context.own([name]);
      const { shard } = factsOf(await askRoute(context, name));
      expectRefusal(await context.send("GET", `/v1/reports/${shard}`), 403, { code: "PERMISSION_DENIED" });
      const path = `/v1/route/${context.deployment.types.bucket}/${name}`;
      const received = await context.send("GET", path, { who: "other" });
      expectStatus(received, 200);
      expectFields(received, { cell: { id: context.cellId() }, epoch: undefined });
    },
  },
  {
    id: "cells/addresses",
    rules: ["API"],
    title: "The list of cells has the cell with an address.",
    run: async (context) => {
      const received = await context.send("GET", "/v1/cells");
      expectStatus(received, 200);
      const { cells = [] } = received.json as { cells?: { id?: string; address?: string }[] };
      const own = cells.find(({ id }) => id === context.cellId());
      expectThat(
        own?.address !== undefined && URL.canParse(own.address),
        `${describe(received)}; it must have the cell ${context.cellId()} with an address`,
      );
    },
  },
];
