import type { operations } from "./api-types.ts";

export type OperationId = keyof typeof operations;
