/** The ports of an object whose writes a world may let fail, and whose time and alarms it keeps. */
import { objectPorts, type PortsOf } from "../../../src/objects/ports.ts";
import type { Ports, SqlValue, Synchronous } from "../../../src/core/ports.ts";
import type { WritePoint } from "../../../src/core/write-points.ts";
import { checkNamed } from "../../support/named-writes.ts";
import { never, seatOf, type World } from "./world.ts";

/** Real alarms are set this much later, so that they ring when a test says so and at no other time. */
const ALARM_SHIFT_MS = 400 * 86_400_000;

/** One instance of an object, from its constructor to its death. */
export class Life {
  readonly world: World;
  readonly label: string;
  readonly #ctx: DurableObjectState;
  readonly #generation: number;
  #isDoomed = false;

  constructor(ctx: DurableObjectState) {
    const { world, label } = seatOf(ctx.id.name);
    this.world = world;
    this.label = label;
    this.#ctx = ctx;
    this.#generation = world.born(label);
  }

  get isDoomed(): boolean {
    return this.#isDoomed;
  }

  /** Goes no further when the instance has died: what it has not made durable is lost. */
  readonly check = (): void => {
    if (this.#isDoomed) throw new Error("this instance has crashed");
    if (this.#generation < this.world.generation) this.die();
  };

  /** Ends the running turn; nothing behind this line runs. */
  die(): never {
    this.#ctx.abort("a crash that was asked for");
    throw new Error("this instance has crashed");
  }

  /** What is written stays; nothing is written, sent or answered any more. */
  dieOnceDurable(): void {
    this.#isDoomed = true;
    this.world.doomed.add(this.label);
    void this.#ctx.storage.sync().then(() => this.die());
  }
}

export function faultyPorts(life: Life): PortsOf {
  return (ctx): Ports => {
    const ports = objectPorts(ctx);
    return {
      ...ports,
      sql: faultySql(ports.sql, life),
      clock: faultyClock(ports.clock, life),
      alarm: shifted(ports.alarm, life),
      halt: haltOf(ports, life),
      log: () => {},
    };
  };
}

function faultySql(sql: Ports["sql"], life: Life): Ports["sql"] {
  const { world, label } = life;
  const state = { isInTransaction: false };
  return {
    all: <Row>(statement: string, ...bindings: SqlValue[]): Row[] => {
      life.check();
      checkNamed(statement, state.isInTransaction);
      return sql.all<Row>(statement, ...bindings);
    },
    transaction: <T>(points: readonly WritePoint[], work: () => Synchronous<T>): T => {
      life.check();
      const { fault, done } = world.writing(label, points);
      if (fault === "crash_before") life.die();
      state.isInTransaction = true;
      const value = sql.transaction<T>(points, work);
      state.isInTransaction = false;
      done();
      if (fault === "cut") world.generation += 1;
      if (fault !== undefined) life.dieOnceDurable();
      return value;
    },
    flush: async () => {
      if (life.isDoomed) return never();
      life.check();
      await sql.flush();
      return life.isDoomed ? never() : undefined;
    },
  };
}

function faultyClock(clock: Ports["clock"], life: Life): Ports["clock"] {
  return {
    now: () => clock.now() + life.world.skewMs,
    after: (delayMs, then) => clock.after(delayMs, then),
    turn: () => (life.isDoomed ? never() : clock.turn()),
  };
}

function shifted(alarm: Ports["alarm"], life: Life): Ports["alarm"] {
  return {
    get: async () => {
      const atMs = await alarm.get();
      return atMs === null ? null : atMs - ALARM_SHIFT_MS;
    },
    set: (atMs) => {
      if (!life.isDoomed) alarm.set(atMs + ALARM_SHIFT_MS);
    },
  };
}

/** An instance that is to die once its write is durable must not end before. */
const haltOf =
  (ports: Ports, life: Life): Ports["halt"] =>
  (reason) => {
    if (!life.isDoomed) ports.halt(reason);
  };
