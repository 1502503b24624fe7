import type { History } from "./history.ts";
import type { Ports } from "./ports.ts";
import { type Result } from "./refusal.ts";
import type { WritePoint } from "./write-points.ts";
interface SubmitOptions {
    weight?: number;
    owner?: string;
    evenIfStopped?: boolean;
}
export declare class GroupCommit {
    #private;
    constructor(ports: Pick<Ports, "sql" | "clock" | "halt">, history: Pick<History, "refusal">, alongside?: () => void, durable?: () => void, maxWeight?: number);
    submit<T = void>(point: WritePoint, work: () => Result<T> | void, { weight, owner, evenIfStopped }?: SubmitOptions): Promise<Result<T>>;
    get waiting(): number;
    waitingOf(owner: string): number;
}
export {};
