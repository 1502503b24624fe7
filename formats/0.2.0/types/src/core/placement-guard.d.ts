import type { Confirmed, Growth } from "./growth/messages.ts";
import type { Envelope } from "./messages.ts";
import type { Limits } from "./limits.ts";
import type { Peers } from "./methods.ts";
import { type Placement } from "./placement.ts";
import type { Ports } from "./ports.ts";
import { type Refusal } from "./refusal.ts";
export type Change = (confirmed: Confirmed, adopt: () => void) => void | Promise<void>;
export interface GuardedObject {
    firstUse: () => Promise<void>;
    cell?: string;
    change?: Change;
}
export declare class PlacementGuard {
    #private;
    constructor(ports: Ports, limits: Limits, peers: Pick<Peers, "directory">, object: GuardedObject);
    get placement(): Placement | undefined;
    get hasGrown(): boolean;
    refuseOutdated(message: Envelope): Refusal | undefined;
    begin(): Promise<void>;
    admit(message: Envelope): Promise<Refusal | undefined>;
    learn({ reason, placement }: Refusal): Promise<boolean>;
    hasStarted({ id, from }: Growth): Promise<boolean>;
    adopt(placement: Placement): void;
    noteGrown(): void;
}
export declare function placementMismatch(here: Placement, there: Placement): Refusal;
