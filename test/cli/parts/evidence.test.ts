/** What a plan says about the names of a shard that went back in time, over random histories of a shard. */
import { describe, expect, test } from "vitest";
import type { Change, HistoryPoint } from "../../../src/client/api-types.ts";
import type { Claim } from "../../../src/cli/backup/changed-claims.ts";
import {
  weigh,
  type Evidence,
  type Findings,
  type LoggedChanges,
} from "../../../src/cli/parts/plan/evidence.ts";
import { LeftHistory } from "../../../src/cli/parts/plan/history.ts";
import { seeded } from "../../support/seeded.ts";

const HISTORIES = 500;
const STEPS = 40;
const NAMES = ["ada", "bob", "eve", "mia", "zoe"];
/** The shard has accepted its loss with this incarnation, which is above all others. */
const ACCEPTED = 1_000_000;

type Names = ReadonlyMap<string, Claim>;

const keyOf = ({ type, value }: Claim["bucket"]): string => `${type} ${value.toLowerCase()}`;

/** The true claims of a shard at each position, and what the feed told of them. */
class History {
  readonly states: Names[] = [new Map()];
  readonly changes: Change[] = [];
  /** Newest last, each with its first position. */
  readonly incarnations: [incarnation: number, firstPosition: number][] = [];
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  static of(random: () => number, steps: number): History {
    const history = new History(random);
    history.go(steps, ["1", "2", "3"]);
    return history;
  }

  get last(): number {
    return this.states.length - 1;
  }

  /** The same history up to a position, as a restored file has it. The next change is of a new instance. */
  upTo(position: number): History {
    const copy = new History(this.#random);
    copy.states.splice(0, 1, ...this.states.slice(0, position + 1));
    copy.changes.push(...this.changes.slice(0, position));
    copy.incarnations.push(...this.incarnations.filter(([, first]) => first <= position));
    return copy;
  }

  /** Leases of these cells change something. Sometimes the shard is restarted. */
  go(steps: number, cells: readonly string[]): void {
    for (let step = 0; step < steps; step += 1) {
      if (step === 0 || this.#random() < 0.1) this.#restart();
      this.#change(cells);
    }
  }

  #restart(): void {
    const [newest = 0] = this.incarnations.at(-1) ?? [];
    const count = Math.floor(newest / 1_000) + 1;
    const incarnation = count * 1_000 + Math.floor(this.#random() * 1_000);
    this.incarnations.push([incarnation, this.last + 1]);
  }

  #change(cells: readonly string[]): void {
    const random = this.#random;
    const pick = (items: readonly string[]): string => items[Math.floor(random() * items.length)] ?? "";
    const position = this.last + 1;
    const state = new Map(this.states.at(-1));
    const name = pick(NAMES);
    const claim = state.get(`ROUTES ${name}`);
    const isCreate = claim === undefined;
    // Only the owner changes a claim, so another cell changes nothing here.
    const isForeign = claim !== undefined && !cells.includes(claim.cell);
    const event = isCreate ? "claimed" : random() < 0.5 ? "replaced" : "released";
    const uuid = claim?.uuid ?? `uuid-${position}-${Math.floor(random() * 1e9)}`;
    const next: Claim = {
      cell: claim?.cell ?? pick(cells),
      uuid,
      epoch: position,
      bucket: { type: "ROUTES", value: random() < 0.2 ? name.toUpperCase() : name },
      subject: { type: "NAMESPACE", id: "1" },
      source: { type: "RAILS_TABLE_ROUTES", id: String(Math.ceil(random() * 9)) },
    };
    if (event === "released" && !isForeign) state.delete(`ROUTES ${name}`);
    else if (!isForeign) state.set(`ROUTES ${name}`, next);
    this.states.push(state);
    const { bucket, subject, source } = event === "released" ? (claim ?? next) : next;
    const isErased = event === "released" && random() < 0.2;
    const lease = { id: "", shard: 0, position, at: "2026-11-28T12:00:00Z", lease_uuid: "lease" };
    this.changes.push({
      ...lease,
      event: isForeign ? "rolled_back" : event,
      cell_id: next.cell,
      epoch: event === "released" ? (claim?.epoch ?? 0) : position,
      ...(isForeign ? {} : { claim: isErased ? { uuid } : { uuid, bucket, subject, source } }),
    });
  }

  at(position: number): Claim[] {
    return [...(this.states[position]?.values() ?? [])];
  }

  point(position: number): HistoryPoint {
    const [incarnation = 0] = this.incarnations.findLast(([, first]) => first <= position) ?? [];
    return { incarnation, position };
  }

  page(from: number, through: number): LoggedChanges {
    return {
      after: this.point(from),
      through: this.point(through),
      changes: this.changes.filter(({ position }) => position > from && position <= through),
    };
  }

  /** Pages without a gap, as one consumer reads them. No page has changes of two incarnations. */
  pages(from: number, through: number): LoggedChanges[] {
    const pages: LoggedChanges[] = [];
    for (let at = from; at < through;) {
      const next = this.incarnations.find(([, first]) => first > at + 1);
      const last = Math.min(through, next === undefined ? Infinity : next[1] - 1);
      const end = Math.min(last, at + 1 + Math.floor(this.#random() * 8));
      pages.push(this.page(at, end));
      at = end;
    }
    return pages;
  }

  get left(): LeftHistory {
    const listed = this.incarnations.map(([incarnation, first]) => ({ incarnation, first_position: first }));
    return new LeftHistory(listed.toReversed(), this.last, ACCEPTED);
  }

  /** The last point of each incarnation after a position, the newest first. */
  ends(position: number): HistoryPoint[] {
    const ends = this.incarnations.map((_, at) => this.incarnations[at + 1]?.[1] ?? this.last + 1);
    return ends
      .map((next) => this.point(next - 1))
      .filter((end) => end.position > position)
      .toReversed();
  }
}

const factsOf = (claims: Iterable<Claim>): string[] =>
  [...claims].map(({ cell, bucket, source }) => `${bucket.value} ${cell} ${source.id}`).toSorted();

/** What the shard has once everything that is certain was carried out. */
function carriedOut(present: readonly Claim[], findings: Findings["findings"]): Claim[] {
  const claims = new Map(present.map((claim) => [keyOf(claim.bucket), claim]));
  for (const { bucket, proposal, known, isCertain } of findings) {
    if (!isCertain) continue;
    if (proposal === "release") claims.delete(keyOf(bucket));
    else if (known !== null) claims.set(keyOf(bucket), known);
  }
  return [...claims.values()];
}

/** A shard that has lost everything after a position, and what it did since, if anything. */
interface Lost {
  lost: History;
  /** What is left, and what the cell 3, which had seen nothing of what was lost, has done since. */
  now: History;
  base: number;
  below: (most: number) => number;
}

function lostShard(seed: number, since: number): Lost {
  const random = seeded(seed);
  const below = (most: number): number => Math.floor(random() * (most + 1));
  const base = below(STEPS - 1);
  const lost = History.of(random, base);
  const now = lost.upTo(base);
  lost.go(STEPS - base, ["1", "2"]);
  now.go(below(since), ["3"]);
  return { lost, now, base, below };
}

const evidenceOf = ({ lost, now }: Lost, more: Partial<Evidence>): Evidence => ({
  present: now.at(now.last),
  left: now.left,
  backup: undefined,
  logs: [],
  seen: [lost.point(STEPS)],
  isDeclared: false,
  forgetful: [],
  since: new Set(),
  ...more,
});

describe("random histories", () => {
  test("[J1] [J2] with all changes that anybody had seen, the plan ends in what the shard had", () => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const shard = lostShard(seed, 0);
      const { lost, base, below } = shard;
      const at = below(STEPS);
      const backup = below(2) === 0 ? undefined : { point: lost.point(at), claims: lost.at(at) };
      const isBackupEnough = at === STEPS && backup !== undefined;
      const logs = isBackupEnough ? [] : [...lost.pages(base, STEPS), ...lost.pages(below(base), STEPS)];
      const seen = isBackupEnough ? [lost.point(STEPS)] : lost.ends(base);
      const evidence = evidenceOf(shard, { backup, logs, seen });
      const found = weigh(evidence, keyOf);
      // A backup alone says where the lost history begins only if the rows have its incarnation.
      const isComplete = !isBackupEnough || shard.now.left.endOf(lost.point(STEPS).incarnation) !== undefined;
      expect({ seed, ...found }).toMatchObject({ through: STEPS, isComplete });
      const decided = found.findings.map((finding) => ({ ...finding, isCertain: true }));
      const certain = isComplete ? found.findings : decided;
      expect(factsOf(carriedOut(evidence.present, certain)), `seed ${seed}`).toEqual(factsOf(lost.at(STEPS)));
    }
  });

  test("[J1] [J4] what was claimed since the shard went back is left alone, or left to a person", () => {
    let contested = 0;
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const shard = lostShard(seed, 12);
      const { lost, now, base, below } = shard;
      const at = base + 1 + below(STEPS - base - 1);
      const backup = below(1) === 0 ? undefined : { point: lost.point(at), claims: lost.at(at) };
      // A consumer that has gone on with what the restored shard told.
      const later = now.last > STEPS ? now.pages(STEPS, now.last) : [];
      const logs = below(3) === 0 ? [] : [...lost.pages(below(base), STEPS), ...later];
      const { findings, isComplete } = weigh(evidenceOf(shard, { backup, logs }), keyOf);
      const result = new Map(
        carriedOut(now.at(now.last), findings).map((each) => [keyOf(each.bucket), each]),
      );
      const truth = lost.states[STEPS];
      for (const [key, claim] of now.states[now.last] ?? []) {
        if (claim.epoch <= base) continue;
        // A claim of the cell 3, whose row is there.
        expect(result.get(key), `seed ${seed}: ${key}`).toBe(claim);
        const isContested = isComplete && ![undefined, "3"].includes(truth?.get(key)?.cell);
        if (!isContested) continue;
        contested += 1;
        const finding = findings.find(({ bucket }) => keyOf(bucket) === key);
        expect(finding, `seed ${seed}: ${key}`).toMatchObject({ proposal: "move", isCertain: false });
      }
      for (const [key, { cell }] of now.states[base] ?? []) {
        // A name that the cell 3 has released since.
        if (cell === "3" && !now.states[now.last]?.has(key))
          expect(result.has(key), `seed ${seed}`).toBe(false);
      }
      for (const [key, claim] of result) {
        if (claim.epoch > base && now.states[now.last]?.get(key) === claim) continue;
        const before = now.states[now.last]?.get(key);
        if (before === claim) continue;
        expect(factsOf([claim]), `seed ${seed}: ${key}`).toEqual(factsOf([truth?.get(key) ?? claim]));
        expect(truth?.has(key), `seed ${seed}: ${key}`).toBe(true);
      }
    }
    expect(contested).toBeGreaterThan(20);
  });

  test("[J2] nothing is certain if somebody had seen more than the evidence has", () => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const shard = lostShard(seed, 0);
      const { lost, now, base, below } = shard;
      const through = base + below(STEPS - 1 - base);
      const found = weigh(evidenceOf(shard, { logs: lost.pages(base, through) }), keyOf);
      expect(found).toMatchObject({ through: through === base ? 0 : through, isComplete: false });
      expect(found.findings.filter(({ isCertain }) => isCertain)).toEqual([]);
      // What is proposed leads to the last known state all the same.
      const decided = found.findings.map((finding) => ({ ...finding, isCertain: true }));
      expect(factsOf(carriedOut(now.at(base), decided)), `seed ${seed}`).toEqual(factsOf(lost.at(through)));
    }
  });

  test("[J2] nothing is certain if a ledger may have forgotten what it saw, or nobody saw anything", () => {
    const shard = lostShard(3, 0);
    const logs = shard.lost.pages(0, STEPS);
    const other = { incarnation: 5_555, position: 5 };
    const doubts: Partial<Evidence>[] = [
      { forgetful: ["2"] },
      { seen: [] },
      { isDeclared: true },
      { since: undefined },
      // Somebody has seen a second history that was lost.
      { seen: [shard.lost.point(STEPS), other] },
    ];
    expect(weigh(evidenceOf(shard, { logs }), keyOf).isComplete).toBe(true);
    for (const more of doubts) {
      const { isComplete, findings } = weigh(evidenceOf(shard, { logs, ...more }), keyOf);
      expect(isComplete).toBe(false);
      expect(findings.length).toBeGreaterThan(0);
      expect(findings.filter(({ isCertain }) => isCertain)).toEqual([]);
    }
  });
});

describe("pages", () => {
  const shard = lostShard(7, 12);
  const { lost, now, base } = shard;

  test("[J1] count for nothing after a gap, and neither does a backup that is older than the rows", () => {
    const later = lost.pages(base + 2, STEPS);
    const backup = { point: lost.point(base - 1), claims: lost.at(base - 1) };
    const found = weigh(evidenceOf(shard, { logs: [...later, ...lost.pages(0, base)], backup }), keyOf);
    expect(found).toMatchObject({ base: "nothing", through: 0, isComplete: false, findings: [] });
    expect(found.unused).toEqual(later);
  });

  test("[J1] and backups of after the loss count for nothing", () => {
    const points = [now.point(now.last), { incarnation: ACCEPTED + 1_000, position: 2_000_000 }];
    for (const point of points) {
      const logs = [{ after: { ...point, position: point.position - 1 }, through: point, changes: [] }];
      const found = weigh(evidenceOf(shard, { backup: { point, claims: [] }, logs }), keyOf);
      expect(found).toMatchObject({ base: "nothing", isComplete: false, findings: [] });
    }
  });

  test("[J1] of the restored shard don't continue those of the history that was lost", () => {
    expect(now.last).toBeGreaterThan(base + 2);
    // A consumer has read up to a lost position, and goes on when the restored shard has got as far.
    const logs = [...lost.pages(base - 1, base + 2), ...now.pages(base + 2, now.last)];
    expect(weigh(evidenceOf(shard, { logs }), keyOf)).toMatchObject({ through: base + 2 });
  });

  test("[J1] of two histories that were lost are not mixed", () => {
    const other = lost.upTo(base);
    other.go(STEPS, ["3"]);
    const later = other.pages(base + 2, other.last);
    const logs = [...lost.pages(base - 1, base + 2), ...later];
    const twice = { ...shard, now: lost.upTo(base) };
    expect(weigh(evidenceOf(twice, { logs }), keyOf)).toMatchObject({ through: base + 2, unused: later });
  });

  test("[J1] of a shard that was emptied are all lost", () => {
    const empty = { ...shard, now: new History(seeded(1)) };
    const evidence = evidenceOf(empty, { logs: lost.pages(0, STEPS) });
    const { isComplete, findings } = weigh(evidence, keyOf);
    expect(isComplete).toBe(true);
    expect(factsOf(carriedOut([], findings))).toEqual(factsOf(lost.at(STEPS)));
  });
});

describe("a name that has changed since the shard went back", () => {
  const LAST = 3;
  const claimOf = (cell: string, epoch: number): Claim => ({
    cell,
    uuid: `uuid-${cell}`,
    epoch,
    bucket: { type: "ROUTES", value: "ada" },
    subject: { type: "NAMESPACE", id: "1" },
    source: { type: "RAILS_TABLE_ROUTES", id: String(epoch) },
  });
  const known = (claim?: Claim) => (claim === undefined ? [] : [claim]);
  /** @param goneOn - the shard has reached this position before its loss was noticed */
  const weighed = (now: Claim | undefined, then: Claim | undefined, since: string[] = [], goneOn = LAST) =>
    weigh(
      {
        present: known(now),
        left: new LeftHistory(
          [
            ...(goneOn > LAST ? [{ incarnation: 2_222, first_position: LAST + 1 }] : []),
            { incarnation: 1_000, first_position: 1 },
          ],
          goneOn,
          ACCEPTED,
        ),
        backup: { point: { incarnation: 1_000, position: 10 }, claims: known(then) },
        logs: [],
        seen: [{ incarnation: 1_000, position: 10 }],
        isDeclared: false,
        forgetful: [],
        since: new Set(since),
      },
      keyOf,
    ).findings;

  test("[J4] stays with the cell that verified it", () => {
    expect(weighed(claimOf("1", 1_000_011), claimOf("1", 7))).toEqual([]);
    expect(weighed(claimOf("1", 1_000_011), undefined)).toEqual([]);
  });

  test("[J4] is for a person to decide if the evidence names another cell", () => {
    expect(weighed(claimOf("1", 1_000_011), claimOf("2", 7))).toMatchObject([
      { proposal: "move", isCertain: false },
    ]);
  });

  test("[J4] is not released if its lease was open at the loss, and has committed since", () => {
    // The claim has the epoch of its hold, which the shard has not lost.
    const old = claimOf("1", 2);
    expect(weighed(old, undefined)).toMatchObject([{ proposal: "release", isCertain: true }]);
    expect(weighed(old, undefined, ["uuid-1"])).toMatchObject([{ proposal: "release", isCertain: false }]);
    expect(weighed(old, undefined, ["ROUTES ada"])).toMatchObject([{ isCertain: false }]);
    expect(weighed(old, undefined, [], 5)).toMatchObject([{ proposal: "release", isCertain: false }]);
  });

  test("[J4] is not replaced by what it was before", () => {
    expect(weighed(claimOf("1", 2), claimOf("1", 1))).toEqual([]);
    expect(weighed(claimOf("1", 2), claimOf("1", 4))).toMatchObject([
      { proposal: "replace", isCertain: true },
    ]);
  });

  test("[J4] is not claimed again if its cell has released it since", () => {
    expect(weighed(undefined, claimOf("1", 7))).toMatchObject([{ proposal: "claim", isCertain: true }]);
    expect(weighed(undefined, claimOf("1", 7), ["uuid-1"])).toMatchObject([
      { proposal: "claim", isCertain: false },
    ]);
    // Before the loss was noticed, only the ledger of a cell that had seen nothing lost could do that.
    expect(weighed(undefined, claimOf("1", 2), [], 5)).toMatchObject([{ isCertain: false }]);
    expect(weighed(undefined, claimOf("1", 7), [], 5)).toMatchObject([{ isCertain: true }]);
  });
});
