import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { ScrubPass, ScrubStatus } from "../../../../src/coordinator/capabilities/scrub/messages.ts";
import type { Part } from "../part.ts";
import type { Evidence } from "./evidence.ts";

interface StoredScrub {
  running: { pass: ScrubPass } | null;
  last: ScrubPass | null;
}

/** Checks that scrubs find nothing where nothing is wrong, and that what they answer is durable. */
export class ScrubWatch {
  readonly #evidence: Evidence;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  answered(name: string, reply: Result<unknown>): void {
    if (!reply.ok) return;
    const { running, last } = reply.value as ScrubStatus;
    for (const pass of [running, last]) if (pass !== null) this.#checkPass(name, pass);
    const newest = running ?? last;
    if (newest !== null) this.#checkDurable(name, newest);
  }

  #checkPass(name: string, pass: ScrubPass): void {
    this.#evidence.check(
      "I45",
      Object.keys(pass.counts).length === 0,
      () => `the scrub of ${name} reports what is not wrong: ${JSON.stringify(pass)}`,
    );
    this.#evidence.see("Z1");
    if (pass.clearedHolds > 0) this.#evidence.see("scrub cleared a hold");
    if (pass.unchecked > 0) this.#evidence.see("scrub left something out");
    if (pass.endedAtMs === null) this.#evidence.see("Z4");
    else if (pass.rows > 0) this.#evidence.see(name.startsWith("shard") ? "Z2" : "Z3");
    if (pass.number > 1) this.#evidence.see("Z5");
  }

  #checkDurable(name: string, { number, rows }: ScrubPass): void {
    const stored = this.#stored(this.#evidence.coordinator.parts.find((part) => part.name === name));
    const durable = stored?.running?.pass ?? stored?.last ?? null;
    this.#evidence.check(
      "I46",
      durable !== null && (durable.number > number || (durable.number === number && durable.rows >= rows)),
      () =>
        `${name} has answered ${rows} rows of pass ${number}, and ${durable?.rows} of pass ` +
        `${durable?.number} are durable`,
    );
  }

  #stored(part: Part<object> | undefined): StoredScrub | undefined {
    const [row] =
      part?.disk.readDurable<{ value: string }>("SELECT value FROM meta WHERE name = 'scrub'") ?? [];
    return row === undefined ? undefined : (JSON.parse(row.value) as StoredScrub);
  }
}
