/**
 * `npm run bench:wire`: begins over the protobuf wire beside begins over JSON, in workerd. Native gRPC goes
 * through `leasehold grpc`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { startCoordinator } from "../../src/hosts/workerd/coordinator.ts";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import { BeginUpdateRequestSchema } from "../../src/coordinator/wire/protobuf.ts";
import { bytesOfSourceId } from "../../src/coordinator/wire/names.ts";
import { closedLoop } from "../client/closed-loop.ts";
import { startBridge, type Bridge } from "./bridge.ts";
import { medianOf, numberOf, parsed, runProgram } from "../program.ts";

const usage = `npm run bench:wire -- [options]

  --rounds N    number of rounds (default 7)
  --seconds N   length of each measurement in a round (default 4)
  --names N     names of each begin (default 1)
  --help        print this help

Measures begins per second of eight callers, in turns: over JSON, over Connect with binary messages, and over
native gRPC through the bridge, without TLS and with mTLS. Prints each round with its ratios to JSON, and the
medians. The begins stay open until the cell's limit, so it is raised.
`;

interface Options {
  rounds: number;
  seconds: number;
  names: number;
}

function readOptions(argv: readonly string[]): Options | undefined {
  const text = { type: "string" } as const;
  const options = { rounds: text, seconds: text, names: text, help: { type: "boolean" } } as const;
  const { values } = parsed(() => parseArgs({ args: [...argv], options }));
  if (values.help === true) return undefined;
  const { rounds, seconds, names } = values;
  return {
    rounds: numberOf("rounds", rounds, 7),
    seconds: numberOf("seconds", seconds, 4),
    names: numberOf("names", names, 1),
  };
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const CLIENTS = 8;
const METHOD = "/gitlab.cells.topology_service.claims.v1.ClaimService/BeginUpdate";

interface Message {
  path: string;
  type: string;
  body: string | Uint8Array;
}

/** The width of a column. */
const CELL = 16;

let made = 0;

const namesOf = (count: number): string[] => Array.from({ length: count }, () => `bench-${(made += 1)}`);

const overJson = (count: number): Message => ({
  path: "/v1/cells/1/leases",
  type: "application/json",
  body: JSON.stringify({
    creates: namesOf(count).map((value) => ({
      bucket: { type: "USERNAMES", value },
      subject: { type: "USER", id: "7" },
      source: { type: "RAILS_TABLE_USERS", id: "7" },
    })),
  }),
});

const messageOf = (count: number): Uint8Array =>
  toBinary(
    BeginUpdateRequestSchema,
    create(BeginUpdateRequestSchema, {
      cellId: 1n,
      createRecords: namesOf(count).map((value) => ({
        claim: { claim: { case: "username" as const, value } },
        subject: { type: 4, id: 7n },
        source: { type: 1, railsPrimaryKeyId: bytesOfSourceId("7") },
      })),
    }),
  );

const overConnect = (count: number): Message => ({
  path: `/grpc${METHOD}`,
  type: "application/proto",
  body: messageOf(count),
});

async function run({ rounds, seconds, names }: Options): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "leasehold-bench-wire-"));
  const variables = { LEASEHOLD_OUTSTANDING_LEASES: "100000" };
  const coordinator = await startCoordinator({ port: await freePort(), stateFolder: root, variables });
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const authorization = `Bearer ${coordinator.keys.cells["1"]}`;
  const send = ({ path, type, body }: Message): Promise<boolean> =>
    new Promise((resolve) => {
      const headers = { authorization, "content-type": type, "content-length": Buffer.byteLength(body) };
      const call = request(`${coordinator.url}${path}`, { agent, method: "POST", headers }, (answer) => {
        answer.resume().on("end", () => resolve(answer.statusCode === 200 || answer.statusCode === 201));
      });
      call.on("error", () => resolve(false)).end(body);
    });
  const bridges: Bridge[] = [];
  const ways: [title: string, begin: () => Promise<boolean>][] = [
    ["JSON", () => send(overJson(names))],
    ["Connect", () => send(overConnect(names))],
  ];
  const perSecond = async (begin: () => Promise<boolean>): Promise<number> => {
    const done = await closedLoop({ clients: CLIENTS, seconds, turn: begin });
    if (done.errors > 0) throw new Error(`${done.errors} begins failed`);
    return done.turns / done.seconds;
  };
  try {
    for (const [title, withMtls] of [
      ["gRPC", false],
      ["gRPC mTLS", true],
    ] as const) {
      const bridge = await startBridge(coordinator.url, authorization, withMtls);
      bridges.push(bridge);
      ways.push([title, () => bridge.send(METHOD, messageOf(names))]);
    }
    // The first calls load the wire and fill caches.
    for (const [, begin] of ways) await perSecond(begin);
    print("".padEnd(10) + ways.map(([title]) => title.padStart(CELL)).join(""));
    const ratios = ways.map((): number[] => []);
    for (let round = 1; round <= rounds; round += 1) {
      const cells: string[] = [];
      let json = Number.NaN;
      for (const [index, [, begin]] of ways.entries()) {
        const begins = await perSecond(begin);
        if (index === 0) json = begins;
        ratios[index]?.push(begins / json);
        cells.push(begins.toFixed(0) + (index === 0 ? "" : ` (${(begins / json).toFixed(3)})`));
      }
      print(`round ${round}`.padEnd(10) + cells.map((cell) => cell.padStart(CELL)).join(""));
    }
    const medians = ratios.map((each) => medianOf(each).toFixed(3).padStart(CELL));
    print(`${"median".padEnd(10)}${medians.join("")}`);
  } finally {
    agent.destroy();
    for (const bridge of bridges) await bridge.stop();
    await coordinator.stop();
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}

await runProgram({ name: "bench:wire", usage, readOptions, run });
