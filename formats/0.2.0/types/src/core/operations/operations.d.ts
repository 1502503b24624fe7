export declare const operationKinds: readonly ["growth", "restore", "reconciliation"];
export type OperationKind = (typeof operationKinds)[number];
export interface Operation {
    id: string;
    kind: OperationKind;
    about: string;
    startedAtMs: number;
    startedBy: string;
    position: number;
}
export interface OperationSet {
    position: number;
    operations: readonly Operation[];
}
export declare const blockedBy: Readonly<Record<OperationKind, readonly OperationKind[]>>;
export declare const inTheWayOf: ({ kind, id }: Pick<Operation, "kind" | "id">, running: readonly Operation[]) => Operation | undefined;
export declare const describeRunning: ({ kind, about }: Pick<Operation, "kind" | "about">) => string;
export declare const howToEnd: ({ kind, id, about }: Pick<Operation, "kind" | "id" | "about">) => string;
