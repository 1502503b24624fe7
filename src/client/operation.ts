import type { operations } from "./wire.ts";

export type OperationId = keyof typeof operations;
