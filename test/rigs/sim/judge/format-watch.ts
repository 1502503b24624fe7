import type { RaiseFormat } from "../../../../src/coordinator/capabilities/upgrade/index.ts";
import type { Stamp } from "../../../../src/coordinator/kernel/formats.ts";
import type { Told } from "../../../../src/coordinator/kernel/messages.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import { wasCarriedOut } from "../coordinator.ts";
import type { Sent } from "../network.ts";
import type { Instance, Part } from "../part.ts";
import { NEWER, OLDER } from "../versions.ts";
import type { Evidence } from "./evidence.ts";

/** What a part has stored durably. */
interface Stored {
  version: number;
  format: number;
}

/** In a run of two versions, checks that code meets only formats that it speaks (M5, M9). */
export class FormatWatch {
  readonly #evidence: Evidence;
  readonly #stored = new Map<Part<object>, Stored>();
  /** The newest format that an operator has asked for. */
  #requested = OLDER;

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  sent({ from, to, method, message }: Sent): void {
    if (this.#evidence.coordinator.speaks === undefined) return;
    if (method === "raiseFormat")
      this.#requested = Math.max(this.#requested, (message as RaiseFormat).raiseTo);
    const { format } = message as Stamp;
    this.#evidence.check(
      "I58",
      format <= this.#requested,
      () => `${from.name} sent ${method} to ${to} in format ${format}, which no operator has put in force`,
    );
  }

  answered({ to, method, message }: Sent, reply: Result<unknown> & Told, by: Instance<object>): void {
    if (by.speaks === undefined) return;
    const { speaks } = by;
    const sender = message as Stamp;
    const stored = this.#formatOf(to, reply, by);
    const check = (isRight: boolean, done: string): void =>
      this.#evidence.check(
        "I58",
        isRight,
        () =>
          `${to} ${done} ${method} in format ${sender.format} of code that speaks ${sender.speaks}, ` +
          `but it speaks ${speaks} and has stored ${stored}`,
      );
    if (wasCarriedOut(sender)) {
      check(stored <= speaks, "has carried out");
      check(sender.format <= speaks && sender.format <= stored, "has carried out");
      check(sender.speaks >= stored, "has answered");
    } else if (stored > speaks) this.#evidence.see("M5");
    else {
      check(sender.format > speaks || sender.speaks < stored, "has refused");
      // The network makes some messages look as if they were in another format.
      if (sender.format <= NEWER) this.#evidence.see("M9");
    }
  }

  /** The format in force, as the instance knows it. One that was replaced knows only what it tells. */
  #formatOf(to: string, { format = 0 }: Told, { isReplaced }: Instance<object>): number {
    const part = this.#evidence.coordinator.parts.find(({ name }) => name === to);
    return isReplaced || part === undefined ? format : part.disk.liveFormat;
  }

  refresh(): void {
    const { coordinator } = this.#evidence;
    if (coordinator.speaks === undefined) return;
    for (const part of coordinator.parts) {
      const { version } = part.disk;
      const before = this.#stored.get(part);
      if (before?.version === version) continue;
      const format = part.disk.durableFormat;
      this.#stored.set(part, { version, format });
      this.#evidence.check(
        "I58",
        format >= (before?.format ?? 0),
        () => `${part.name} had stored format ${before?.format}, and now has ${format}`,
      );
      const [late] = part.disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'later'");
      this.#evidence.check(
        "I58",
        (late !== undefined) === format >= NEWER,
        () => `${part.name} has ${late === undefined ? "no" : "a"} later table in format ${format}`,
      );
    }
  }
}
