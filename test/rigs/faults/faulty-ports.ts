/**
 * The ports of an object in a TestDeployment, which can make its writes fail and controls its clock and
 * alarms.
 */
import { objectPorts, type PortsOf } from "../../../src/coordinator/objects/ports.ts";
import type { Ports, SqlValue, Synchronous } from "../../../src/coordinator/kernel/ports.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import { checkNamed } from "../../support/named-writes.ts";
import { never, identityOf, type TestDeployment } from "./test-deployment.ts";

/** Real alarms are set this much later, so that only tests ring them. */
const ALARM_SHIFT_MS = 400 * 86_400_000;

/**
 * workerd reports every object that was aborted. The plugin of Vitest doesn't print reports with this text,
 * because it aborts objects itself.
 */
const UNREPORTED = "broken.outputGateBroken; jsg.Error: Instance dispose";
const CRASH = "Instance dispose: a crash that the test requested";

class Crashed extends Error {
  constructor() {
    super(`${UNREPORTED}: this instance has crashed`);
  }
}

/** One instance of an object, from its constructor to its end. */
export class FaultyInstance {
  readonly deployment: TestDeployment;
  readonly label: string;
  readonly #ctx: DurableObjectState;
  readonly #generation: number;
  #isDoomed = false;

  constructor(ctx: DurableObjectState) {
    const { deployment, label } = identityOf(ctx.id.name);
    this.deployment = deployment;
    this.label = label;
    this.#ctx = ctx;
    this.#generation = deployment.born(label);
  }

  get isDoomed(): boolean {
    return this.#isDoomed;
  }

  /** Throws if the instance is dead. Everything that it has not made durable is lost. */
  readonly check = (): void => {
    if (this.#isDoomed) throw new Crashed();
    if (this.#generation < this.deployment.generation) this.die();
  };

  /** Ends the instance and the running turn. */
  die(): never {
    this.#ctx.abort(CRASH);
    throw new Crashed();
  }

  /** Ends the instance once its writes are durable. Until then it writes, sends and answers nothing. */
  dieOnceDurable(): void {
    this.#isDoomed = true;
    this.deployment.doomed.add(this.label);
    void this.#ctx.storage.sync().then(() => this.die());
  }
}

export function faultyPorts(instance: FaultyInstance): PortsOf {
  return (ctx): Ports => {
    const ports = objectPorts(ctx);
    return {
      ...ports,
      sql: faultySql(ports.sql, instance),
      clock: faultyClock(ports.clock, instance),
      alarm: shifted(ports.alarm, instance),
      halt: haltOf(ports, instance),
      log: () => {},
    };
  };
}

function faultySql(sql: Ports["sql"], instance: FaultyInstance): Ports["sql"] {
  const { deployment, label } = instance;
  const state = { isInTransaction: false };
  return {
    all: <Row>(statement: string, ...bindings: SqlValue[]): Row[] => {
      instance.check();
      checkNamed(statement, state.isInTransaction);
      return sql.all<Row>(statement, ...bindings);
    },
    transaction: <T>(points: readonly WritePoint[], work: () => Synchronous<T>): T => {
      instance.check();
      const { fault, done } = deployment.writing(label, points);
      if (fault === "crash_before") instance.die();
      state.isInTransaction = true;
      const value = sql.transaction<T>(points, work);
      state.isInTransaction = false;
      done();
      if (fault === "cut") deployment.generation += 1;
      if (fault !== undefined) instance.dieOnceDurable();
      return value;
    },
    sizeBytes: () => sql.sizeBytes(),
    flush: async () => {
      if (instance.isDoomed) return never();
      instance.check();
      await sql.flush();
      return instance.isDoomed ? never() : undefined;
    },
  };
}

function faultyClock(clock: Ports["clock"], instance: FaultyInstance): Ports["clock"] {
  return {
    now: () => clock.now() + instance.deployment.skewMs,
    after: (delayMs, then) => clock.after(delayMs, then),
    turn: () => (instance.isDoomed ? never() : clock.turn()),
  };
}

function shifted(alarm: Ports["alarm"], instance: FaultyInstance): Ports["alarm"] {
  return {
    get: async () => {
      const atMs = await alarm.get();
      return atMs === null ? null : atMs - ALARM_SHIFT_MS;
    },
    set: (atMs) => {
      if (!instance.isDoomed) alarm.set(atMs + ALARM_SHIFT_MS);
    },
  };
}

/** An instance that must die once its write is durable does not end before. */
const haltOf =
  (ports: Ports, instance: FaultyInstance): Ports["halt"] =>
  (reason) => {
    if (!instance.isDoomed) ports.halt(reason);
  };
