import type { Envelope, OperatorCall } from "../messages.ts";
import { type Refusal } from "../refusal.ts";
import { type Operation } from "./operations.ts";
export interface BeginOperation extends OperatorCall {
    operation: Pick<Operation, "id" | "kind" | "about">;
}
export interface EndOperation extends Envelope {
    operation: Pick<Operation, "id" | "position">;
}
export interface EndRestore extends OperatorCall {
    id: string;
}
export declare const operationRunning: (operation: Operation) => {
    ok: false;
    refusal: Refusal;
};
