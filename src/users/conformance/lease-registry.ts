import type { CellName } from "./api.ts";

interface OpenLease {
  uuid: string;
  by: CellName;
}

/** The leases of a run that may be open. They are recorded before their begin is sent. */
export class LeaseRegistry {
  /** By cell and UUID, because two cells may use the same UUID. */
  readonly #open = new Map<string, OpenLease>();

  add(uuid: string, by: CellName): void {
    this.#open.set(`${by}/${uuid}`, { uuid, by });
  }

  /** The implementation has acknowledged a decision. */
  decided(uuid: string, by: CellName): void {
    this.#open.delete(`${by}/${uuid}`);
  }

  openOf(cell: CellName): string[] {
    return [...this.#open.values()].filter(({ by }) => by === cell).map(({ uuid }) => uuid);
  }
}
