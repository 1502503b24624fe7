/** What a plan says about the names of a shard that went back in time, over random histories of a shard. */
import { describe, expect, test } from "vitest";
import type { Change } from "../../../src/client/api-types.ts";
import type { Claim } from "../../../src/cli/backup/changed-claims.ts";
import { weigh, type Evidence, type LoggedChanges } from "../../../src/cli/parts/plan/evidence.ts";
import { seeded } from "../../support/seeded.ts";

const HISTORIES = 500;
const STEPS = 40;
const NAMES = ["ada", "bob", "eve", "mia", "zoe"];
const CELLS = ["1", "2"];

type Names = ReadonlyMap<string, Claim>;

const keyOf = ({ type, value }: Claim["bucket"]): string => `${type} ${value.toLowerCase()}`;

/** The true claims of a shard at each position, and what the feed told of them. */
class History {
  readonly states: Names[] = [new Map()];
  readonly changes: Change[] = [];

  constructor(random: () => number) {
    const pick = (items: readonly string[]): string => items[Math.floor(random() * items.length)] ?? "";
    for (let position = 1; position <= STEPS; position += 1) {
      const state = new Map(this.states.at(-1));
      const name = pick(NAMES);
      const claim = state.get(`ROUTES ${name}`);
      const isCreate = claim === undefined;
      const event = isCreate ? "claimed" : random() < 0.5 ? "replaced" : "released";
      const uuid = claim?.uuid ?? `uuid-${position}`;
      const next: Claim = {
        cell: claim?.cell ?? pick(CELLS),
        uuid,
        epoch: position,
        bucket: { type: "ROUTES", value: random() < 0.2 ? name.toUpperCase() : name },
        subject: { type: "GROUP", id: "1" },
        source: { type: "RAILS_TABLE_ROUTES", id: String(Math.ceil(random() * 9)) },
      };
      if (event === "released") state.delete(`ROUTES ${name}`);
      else state.set(`ROUTES ${name}`, next);
      this.states.push(state);
      const { bucket, subject, source } = event === "released" ? (claim ?? next) : next;
      const isErased = event === "released" && random() < 0.2;
      this.changes.push({
        id: `${event}:0:${position}:${uuid}`,
        event,
        shard: 0,
        position,
        at: "2026-11-28T12:00:00Z",
        cell_id: next.cell,
        lease_uuid: "lease",
        epoch: event === "released" ? (claim?.epoch ?? 0) : position,
        claim: isErased ? { uuid } : { uuid, bucket, subject, source },
      });
    }
  }

  at(position: number): Claim[] {
    return [...(this.states[position]?.values() ?? [])];
  }

  log(from: number, through: number): LoggedChanges {
    return {
      from,
      through,
      changes: this.changes.filter(({ position }) => position > from && position <= through),
    };
  }
}

const factsOf = (claims: Iterable<Claim>): string[] =>
  [...claims].map(({ cell, bucket, source }) => `${bucket.value} ${cell} ${source.id}`).toSorted();

/** What the shard has once everything that is certain was carried out. */
function carriedOut(present: readonly Claim[], findings: ReturnType<typeof weigh>["findings"]): Claim[] {
  const claims = new Map(present.map((claim) => [keyOf(claim.bucket), claim]));
  for (const { bucket, proposal, known, isCertain } of findings) {
    if (!isCertain) continue;
    if (proposal === "release") claims.delete(keyOf(bucket));
    else if (known !== null) claims.set(keyOf(bucket), known);
  }
  return [...claims.values()];
}

const numbers = (seed: number) => {
  const random = seeded(seed);
  const history = new History(random);
  return { history, below: (most: number) => Math.floor(random() * (most + 1)) };
};

describe("random histories", () => {
  test("[J1] [J2] with all changes that anybody had seen, the plan ends in what the shard had", () => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const { history, below } = numbers(seed);
      const left = below(STEPS);
      const at = below(STEPS);
      const backup = below(2) === 0 ? undefined : { position: at, claims: history.at(at) };
      const base = Math.max(left, backup?.position ?? 0);
      const middle = base + below(STEPS - base);
      const logs = [history.log(middle, STEPS), history.log(below(base), middle)];
      const evidence: Evidence = { present: history.at(left), left, backup, logs, newestSeen: STEPS };
      const found = weigh(evidence, keyOf);
      expect({ seed, ...found }).toMatchObject({ through: STEPS, isComplete: true });
      expect(factsOf(carriedOut(evidence.present, found.findings)), `seed ${seed}`).toEqual(
        factsOf(history.at(STEPS)),
      );
    }
  });

  test("[J2] nothing is certain if somebody had seen more than the evidence has", () => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const { history, below } = numbers(seed);
      const left = below(STEPS - 1);
      const through = left + below(STEPS - 1 - left);
      const logs = [history.log(left, through)];
      const present = history.at(left);
      const found = weigh({ present, left, backup: undefined, logs, newestSeen: STEPS }, keyOf);
      expect(found).toMatchObject({ through, isComplete: false });
      expect(found.findings.filter(({ isCertain }) => isCertain)).toEqual([]);
      // What is proposed leads to the last known state all the same.
      const decided = found.findings.map((finding) => ({ ...finding, isCertain: true }));
      expect(factsOf(carriedOut(present, decided)), `seed ${seed}`).toEqual(factsOf(history.at(through)));
    }
  });
});

test("[J1] a log after a gap counts for nothing, and neither does a backup older than the rows", () => {
  const { history } = numbers(7);
  const found = weigh(
    {
      present: history.at(20),
      left: 20,
      backup: { position: 10, claims: history.at(10) },
      logs: [history.log(22, STEPS), history.log(5, 18)],
      newestSeen: STEPS,
    },
    keyOf,
  );
  expect(found).toMatchObject({ base: "rows", through: 20, isComplete: false, findings: [] });
  expect(found.unused.map(({ from }) => from)).toEqual([22]);
});

describe("a name that a verification has claimed since the loss was accepted", () => {
  const claimOf = (cell: string, epoch: number): Claim => ({
    cell,
    uuid: `uuid-${cell}-${epoch}`,
    epoch,
    bucket: { type: "ROUTES", value: "ada" },
    subject: { type: "GROUP", id: "1" },
    source: { type: "RAILS_TABLE_ROUTES", id: "1" },
  });
  const weighed = (now: Claim, known: Claim | undefined) =>
    weigh(
      {
        present: [now],
        left: 3,
        backup: { position: 10, claims: known === undefined ? [] : [known] },
        logs: [],
        newestSeen: 10,
      },
      keyOf,
    ).findings;

  test("[J2] stays with the cell that verified it", () => {
    expect(weighed(claimOf("1", 1_000_011), claimOf("1", 7))).toEqual([]);
    expect(weighed(claimOf("1", 1_000_011), undefined)).toEqual([]);
  });

  test("[J2] is for a person to decide if the evidence names another cell", () => {
    expect(weighed(claimOf("1", 1_000_011), claimOf("2", 7))).toMatchObject([
      { proposal: "move", isCertain: false },
    ]);
  });
});
